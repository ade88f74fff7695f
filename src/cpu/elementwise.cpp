// Dispatch of elementwise functions by register type; logic and select.
#include "cpu/elementwise.h"

#include <cstdint>
#include <string>

#include "cpu/elementwise_parts.h"
#include "prism/error.h"

namespace prism::cpu {
namespace {

// select copies bits, so i32 serves f32 and i64 serves f64.
template <class Bits>
void choose(const int32_t* condition, const void* yes, const void* no, void* out, size_t n) {
  const Bits* b = static_cast<const Bits*>(yes);
  const Bits* c = static_cast<const Bits*>(no);
  Bits* to = static_cast<Bits*>(out);
  for (size_t i = 0; i < n; ++i) {
    const Bits from_b = b[i], from_c = c[i];
    to[i] = condition[i] != 0 ? from_b : from_c;
  }
}

void logic(ScalarOp op, const int32_t* a, const int32_t* b, int32_t* out, size_t n) {
  if (op == ScalarOp::logical_not)
    for (size_t i = 0; i < n; ++i) out[i] = a[i] == 0;
  else if (op == ScalarOp::logical_and)
    for (size_t i = 0; i < n; ++i) out[i] = (a[i] != 0) & (b[i] != 0);
  else
    for (size_t i = 0; i < n; ++i) out[i] = (a[i] | b[i]) != 0;
}

bool apply_typed(ScalarOp op, DType type, const void* a, const void* b, void* out, size_t n) {
  switch (type) {
    case DType::f32: {
      const float* x = static_cast<const float*>(a);
      const float* y = static_cast<const float*>(b);
      return apply_f32(op, x, y, out, n) ||
             apply_f32_functions(op, x, y, static_cast<float*>(out), n);
    }
    case DType::f64:
      return apply_f64(op, static_cast<const double*>(a), static_cast<const double*>(b), out, n);
    case DType::i32:
      return apply_i32(op, static_cast<const int32_t*>(a), static_cast<const int32_t*>(b), out, n);
    case DType::i64:
      return apply_i64(op, static_cast<const int64_t*>(a), static_cast<const int64_t*>(b), out, n);
    default:
      return false;
  }
}

}  // namespace

void apply(ScalarOp op, DType type, const void* a, const void* b, const void* c, void* out,
           size_t n) {
  if (is_logical(op)) {
    logic(op, static_cast<const int32_t*>(a), static_cast<const int32_t*>(b),
          static_cast<int32_t*>(out), n);
    return;
  }
  const bool narrow = type == DType::i32 || type == DType::f32;
  const bool known = narrow || type == DType::i64 || type == DType::f64;
  if (op == ScalarOp::select && known) {
    const int32_t* condition = static_cast<const int32_t*>(a);
    if (narrow)
      choose<int32_t>(condition, b, c, out, n);
    else
      choose<int64_t>(condition, b, c, out, n);
    return;
  }
  if (!known || !apply_typed(op, type, a, b, out, n))
    throw Error(ErrorCode::kInvalidArgument, "applying " + std::string(scalar_op_name(op)) +
                                                 " on the CPU: no meaning for " + dtype_name(type) +
                                                 " registers; convert to f32 or f64 first");
}

}  // namespace prism::cpu
