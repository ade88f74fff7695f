// The elementwise functions over short arrays: the steps of a fused chain, whose registers are
// arrays of up to a few thousand elements in the cache.
#pragma once

#include <cstddef>

#include "base/types/scalar_op.h"
#include "prism/dtype.h"

namespace prism::cpu {

// out[i] = op(a[i], b[i], c[i]) for i < n. `type` is the register type: f32, f64, i32 or i64.
// Comparisons read `type` and write i32 (0 or 1). Logic ignores `type`: it reads and writes i32
// (any non-zero is true). select reads an i32 condition in a and `type` in b and c. Unused operands
// are not read. out may be a, b or c itself if the elements have the same size.
//
// min, max and sign propagate NaN; relu(x) is x < 0 ? 0 : x, as in kernels; round rounds halves to
// even. f32 functions have a relative error of at most 4e-7. Throws Error for another type, and if
// op is not defined for integers.
void apply(ScalarOp op, DType type, const void* a, const void* b, const void* c, void* out,
           size_t n);

// Conversion between stored elements and registers. Stored b1 is one byte, 0 or 1. Integers wrap,
// float to integer saturates (NaN gives 0), floats round to nearest even, and conversion to b1 is
// x != 0. stride is in elements: 0 repeats the first, a negative stride reads backwards.
void load(DType stored, const void* from, ptrdiff_t stride, DType reg, void* to, size_t n);
void store(DType reg, const void* from, DType stored, void* to, size_t n);
// Converts between register types; not in place.
void convert_registers(DType from_type, const void* from, DType to_type, void* to, size_t n);

}  // namespace prism::cpu
