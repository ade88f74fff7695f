// The combining operation and identity of each reduction.
#include "lower/group_reduce.h"

#include <limits>

namespace prism::lower_detail {

using namespace dsl;

Value combine(ir::ReduceOp op, Operand a, Operand b) {
  switch (op) {
    case ReduceOp::add:
      return a + b;
    case ReduceOp::min:
      return dsl::min(a, b);
    case ReduceOp::max:
      return dsl::max(a, b);
    case ReduceOp::bit_and:
      return a & b;
    case ReduceOp::bit_or:
      return a | b;
    case ReduceOp::bit_xor:
      return a ^ b;
  }
  return a.value();
}

namespace {
Value extreme(DType type, bool lowest) {
  switch (type) {
    case DType::f16:
      return constant_bits(type, lowest ? 0xfc00 : 0x7c00);
    case DType::f32:
      return constant_bits(type, lowest ? 0xff800000u : 0x7f800000u);
    case DType::f64:
      return constant_bits(type, lowest ? 0xfff0000000000000ull : 0x7ff0000000000000ull);
    case DType::i32:
      return constant_bits(type, lowest ? 0x80000000u : 0x7fffffffu);
    case DType::i64:
      return constant_bits(type, lowest ? 0x8000000000000000ull : 0x7fffffffffffffffull);
    case DType::u64:
      return constant_bits(type, lowest ? 0 : ~0ull);
    default:
      return constant_bits(type, lowest ? 0 : 0xffffffffu);
  }
}
}  // namespace

Value identity(ir::ReduceOp op, DType type) {
  switch (op) {
    case ReduceOp::min:
      return extreme(type, false);
    case ReduceOp::max:
      return extreme(type, true);
    case ReduceOp::bit_and:
      return constant_bits(type, type == DType::b1                          ? 1
                                 : type == DType::u64 || type == DType::i64 ? ~0ull
                                                                            : 0xffffffffu);
    default:
      return constant_bits(type, 0);
  }
}

Value to_stored(Value value) {
  if (value.element() == b1) return select(value, constant(u32, 1), constant(u32, 0));
  if (value.element() == f16) return cast(f32, value);
  return value;
}

Value from_stored(DType type, Value value) {
  if (type == b1) return value != 0u;
  return value.element() == type ? value : cast(type, value);
}

}  // namespace prism::lower_detail
