// Exponential, logarithmic and trigonometric steps.
#include <bit>
#include <cmath>
#include <limits>

#include "ir/interpreter/interpreter_half.h"
#include "ir/interpreter/interpreter_ops.h"

#define PRISM_OPS "ir/interpreter/interpreter_math.inc"
#include "ir/interpreter/interpreter_isa.h"

namespace prism::ir::vm {

Run find_math(Op op, DType type, bool uniform) {
  return PRISM_DISPATCH(math_for(op, type, uniform));
}

}  // namespace prism::ir::vm
