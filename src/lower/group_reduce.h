// Helpers to expand reductions: the operation, its identity, and b1 stored as u32 in shared memory.
#pragma once

#include "prism/kernel.h"

namespace prism::lower_detail {

dsl::Value combine(ir::ReduceOp op, dsl::Operand a, dsl::Operand b);
dsl::Value identity(ir::ReduceOp op, DType type);
dsl::Value to_stored(dsl::Value value);                // b1 and f16 become u32 and f32
dsl::Value from_stored(DType type, dsl::Value value);  // the inverse

}  // namespace prism::lower_detail
