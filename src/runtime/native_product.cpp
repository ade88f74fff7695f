// Validation of products before they reach a backend.
#include "runtime/native_product.h"

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {
namespace {

[[noreturn]] void fail(const NativeProduct& product, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("product of {}: {}", describe(product), why));
}

uint64_t checked_stride(const NativeProduct& product, const char* name, uint64_t stride,
                        uint32_t columns) {
  if (stride == 0) return columns;
  if (stride < columns)
    fail(product,
         fmt::format("{} has a row stride of {} elements, and rows of {}", name, stride, columns));
  return stride;
}

// Elements from the first to one past the last element of a matrix.
uint64_t reach(uint64_t rows, uint64_t columns, uint64_t stride) {
  return rows == 0 || columns == 0 ? 0 : (rows - 1) * stride + columns;
}

bool types_fit(const NativeProduct& p) {
  if (p.a_type != p.b_type) return false;
  switch (p.a_type) {
    case DType::f16:
    case DType::bf16:
      return p.c_type == p.a_type || p.c_type == DType::f32;
    case DType::f32:
      return p.c_type == DType::f32;
    case DType::i8:
      return p.c_type == DType::i32;
    default:
      return false;
  }
}

}  // namespace

NativeProduct checked(const NativeProduct& product) {
  NativeProduct p = product;
  if (!types_fit(p))
    fail(p, "products are f16 to f16 or f32, bf16 to bf16 or f32, f32 to f32, i8 to i32");
  if (p.c_type == DType::i32 && (p.alpha != static_cast<float>(static_cast<int32_t>(p.alpha)) ||
                                 (p.beta != 0 && p.beta != 1)))
    fail(p,
         fmt::format("alpha {} and beta {} of an integer product; alpha is an integer, beta 0 or 1",
                     p.alpha, p.beta));
  p.a_stride = checked_stride(p, "a", p.a_stride, p.a_columns());
  p.b_stride = checked_stride(p, "b", p.b_stride, p.b_columns());
  p.c_stride = checked_stride(p, "c", p.c_stride, p.n);
  const uint64_t each = reach(p.m, p.n, p.c_stride);
  if (p.batch > 1 && p.c_batch < each)
    fail(p,
         fmt::format("c has a batch stride of {} elements, and matrices of {}", p.c_batch, each));
  return p;
}

ProductBytes product_bytes(const NativeProduct& p) {
  if (p.is_empty()) return {};
  const auto bytes = [&](uint64_t one, uint64_t batch_stride, DType type) {
    return one == 0 ? 0 : ((p.batch - 1) * batch_stride + one) * dtype_bytes(type);
  };
  return {bytes(reach(p.a_rows(), p.a_columns(), p.a_stride), p.a_batch, p.a_type),
          bytes(reach(p.b_rows(), p.b_columns(), p.b_stride), p.b_batch, p.b_type),
          bytes(reach(p.m, p.n, p.c_stride), p.c_batch, p.c_type)};
}

std::string describe(const NativeProduct& p) {
  std::string text = fmt::format("{} x {} x {}, {} x {} to {}", p.m, p.n, p.k, dtype_name(p.a_type),
                                 dtype_name(p.b_type), dtype_name(p.c_type));
  if (p.transpose_a) text += ", a transposed";
  if (p.transpose_b) text += ", b transposed";
  if (p.batch != 1) text += fmt::format(", batch {}", p.batch);
  return text;
}

}  // namespace prism
