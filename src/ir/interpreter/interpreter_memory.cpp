// Load and store steps. Bounds are always checked: a kernel must not be able to crash the process.
#include <algorithm>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "ir/interpreter/interpreter_cells.h"
#include "ir/interpreter/interpreter_ops.h"

#define PRISM_OPS "ir/interpreter/interpreter_memory.inc"
#include "ir/interpreter/interpreter_isa.h"

namespace prism::ir::vm {

Run find_load(DType element, Space space, bool uniform) {
  return PRISM_DISPATCH(load_for(element, space, uniform));
}
Run find_load_words(bool uniform) { return PRISM_DISPATCH(load_words_for(uniform)); }
Run find_store(DType element, Space space) { return PRISM_DISPATCH(store_for(element, space)); }
Run find_store_words() { return PRISM_DISPATCH(store_words_for()); }

}  // namespace prism::ir::vm
