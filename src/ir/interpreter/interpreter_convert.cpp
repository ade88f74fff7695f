// Conversion, packing, bit-field and copying steps.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/interpreter/interpreter_half.h"
#include "ir/interpreter/interpreter_ops.h"

#define PRISM_OPS "ir/interpreter/interpreter_convert.inc"
#include "ir/interpreter/interpreter_isa.h"

namespace prism::ir::vm {

Run find_cast(DType from, DType to, bool uniform) {
  return PRISM_DISPATCH(cast_for(from, to, uniform));
}
Run find_bits(Op op, DType type, bool uniform) {
  return PRISM_DISPATCH(bits_for(op, type, uniform));
}
Run find_copy(uint8_t bytes, bool from_uniform, bool to_uniform) {
  return PRISM_DISPATCH(copy_for(bytes, from_uniform, to_uniform));
}
Run find_masked_copy(uint8_t bytes, bool from_uniform) {
  return PRISM_DISPATCH(masked_copy_for(bytes, from_uniform));
}
Run find_words(bool split, bool uniform) { return PRISM_DISPATCH(words_for(split, uniform)); }

}  // namespace prism::ir::vm
