// Arithmetic, bitwise, comparison and select steps.
#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/interpreter/interpreter_half.h"
#include "ir/interpreter/interpreter_ops.h"

#define PRISM_OPS "ir/interpreter/interpreter_arithmetic.inc"
#include "ir/interpreter/interpreter_isa.h"

namespace prism::ir::vm {

bool& use_avx2() {
#if defined(PRISM_HAS_AVX2)
  static bool use = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  static bool use = false;
#endif
  return use;
}

Run find_unary(Op op, DType type, bool uniform) {
  return PRISM_DISPATCH(unary_for(op, type, uniform));
}
Run find_binary(Op op, DType type, Form form) { return PRISM_DISPATCH(binary_for(op, type, form)); }
Run find_fma(DType type, Form form) { return PRISM_DISPATCH(fma_for(type, form)); }
Run find_select(uint8_t bytes, bool uniform) { return PRISM_DISPATCH(select_for(bytes, uniform)); }

}  // namespace prism::ir::vm
