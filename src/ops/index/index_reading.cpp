// Index checks, whose errors name the wrong index, and index loads in kernels.
#include "ops/index/index_reading.h"

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::ops {

void check_index_type(const char* op, const Tensor& indices) {
  if (indices.type() == ElementType(DType::i32) || is_wide(indices.type())) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: indices of type {}; they must be i32 or i64", op, indices.type().name()));
}

void check_changeable(const char* op, const Tensor& base) {
  const bool whole = base.layout().is_dense() && base.layout().offset == 0 &&
                     base.elements() == base.node()->outputs[base.output()].shape.elements();
  if (base.is_evaluated() && !base.node()->is_input && whole) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} is {}; what is changed in place must be a whole tensor that has "
                          "its values: eval() it before, and let a compiled function capture it",
                          op, base.shape().text(),
                          base.node()->is_input ? "an input of a compiled function"
                          : base.is_evaluated() ? "a view"
                                                : "yet to be computed"));
}

HostIndices::HostIndices(const char* op, const HostView& view, int64_t rows)
    : op_(op),
      first_(view.data + view.layout.offset * static_cast<int64_t>(view.type.block_bytes())),
      wide_(is_wide(view.type)),
      count_(view.layout.shape.elements()),
      rows_(rows) {}

int64_t HostIndices::operator[](int64_t i) const {
  const int64_t index = raw(i);
  if (index >= 0 && index < rows_) return index;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: index {} (number {} of {}) is outside 0 to {}", op_, index, i,
                          count_, rows_ - 1));
}

dsl::Value load_index(const dsl::In& words, dsl::Value i, bool wide) {
  using namespace dsl;
  const Value none = constant_bits(u32, 0xffffffffu);
  if (!wide) {
    const Value index = words[i];
    return select(index < 0x80000000u, index, none);
  }
  const Value both = words.load(i * 2u, 2);
  return select(both[1] == 0u, both[0], none);
}

}  // namespace prism::ops
