// Control flow steps.
#include "ir/interpreter/interpreter_flow.h"

#include "ir/interpreter/interpreter_half.h"
#include "ir/interpreter/interpreter_ops.h"

#define PRISM_OPS "ir/interpreter/interpreter_flow.inc"
#include "ir/interpreter/interpreter_isa.h"

namespace prism::ir::vm {

Run find_flow(Flow flow) { return PRISM_DISPATCH(flow_for(flow)); }

}  // namespace prism::ir::vm
