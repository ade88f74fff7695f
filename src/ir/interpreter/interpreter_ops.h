// The interpreter's step functions, by family.
#pragma once

#include "ir/interpreter/interpreter_program.h"

namespace prism::ir::vm {

// Whether this processor has AVX2, FMA and F16C. Tests switch it off to cover the generic code.
bool& use_avx2();

// Which operands of a step are planes. all_uniform: operands and result are stored once.
enum class Form : uint8_t { planes, first_uniform, second_uniform, all_uniform };

// Each returns null if the op does not support the type. args: result, then operands.
Run find_unary(Op op, DType type, bool uniform);
Run find_binary(Op op, DType type, Form form);  // arithmetic, bits, comparison
Run find_fma(DType type, Form form);            // first_uniform: a; second_uniform: b
Run find_select(uint8_t bytes, bool uniform);
Run find_math(Op op, DType type, bool uniform);  // exp, log, sin ...
Run find_cast(DType from, DType to, bool uniform);
Run find_bits(Op op, DType type,
              bool uniform);  // extract_bits ... dot4; args: results, then operands
Run find_copy(uint8_t bytes, bool from_uniform, bool to_uniform);
Run find_masked_copy(uint8_t bytes, bool from_uniform);  // (to, from) under the mask
Run find_words(bool split, bool uniform);  // split: (low, high, from64), join: (to64, low, high)

// args: results..., index. Uniform: everything is stored once.
Run find_load(DType element, Space space, bool uniform);
Run find_load_words(bool uniform);
// args: index, values...
Run find_store(DType element, Space space);
Run find_store_words();
Run find_atomic(DType element, bool shared);  // (old, index, value[, expected]); bits: AtomicOp
Run find_async_copy();               // (shared index, buffer index[, predicate]); bits: elements
Run find_across(Op op, DType type);  // (result, value[, lane]); group_reduce: the result is uniform
Run find_fragment(Op op);            // all except map and make; operands as in the IR
Run find_map_begin();                // (round, mask, row, column, sources...); jump: past the map
Run find_map_end();                  // (round, value); jump: the beginning

}  // namespace prism::ir::vm
