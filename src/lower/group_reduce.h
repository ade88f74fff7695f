// Reductions written out: the operation, its first value, and b1 kept as u32 in shared memory.
#pragma once

#include "prism/kernel.h"

namespace prism::lower_detail {

dsl::Value combine(ir::ReduceOp op, dsl::Operand a, dsl::Operand b);
dsl::Value identity(ir::ReduceOp op, DType type);
dsl::Value to_stored(dsl::Value value);                // b1 and f16 become u32 and f32
dsl::Value from_stored(DType type, dsl::Value value);  // and back

}  // namespace prism::lower_detail
