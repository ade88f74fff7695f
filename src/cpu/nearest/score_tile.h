// The inner loops of nearest(): products of a few queries with a few rows, for the instruction set
// in use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prism/dtype.h"

namespace prism::cpu {

// The rows that one call scores at most: the scores of eight queries take 8 KB.
inline constexpr size_t kTileRows = 256;

// out[q * kTileRows + r] = sum over i of x[q][i] y[r][i], or of (x[q][i] - scale[r] y[r][i])^2 if
// `difference`; scale may be null. x is f32 with row stride `width`; y is dense rows of f32, f16,
// bf16 or i8. rows is at most kTileRows.
void score_tile(bool difference, DType type, const float* x, size_t queries, const void* y,
                const float* scales, size_t rows, size_t width, float* out);
// out[r] = sum over i of y[r][i]^2.
void square_tile(DType type, const void* y, size_t rows, size_t width, float* out);
// out[q * kTileRows + r]: the number of different bits.
void hamming_tile(const uint8_t* x, size_t queries, const uint8_t* y, size_t rows, size_t bytes,
                  float* out);

// In f64 over one row: the sum of x y, of y y, or of (x - y)^2, where y is scaled.
enum class ExactSum { product, squares, difference };
double exact_sum(ExactSum sum, DType type, const float* x, const void* y, double scale,
                 size_t width);

// Writes the indices i < n whose score times sign is above the threshold, in order, and returns
// their number. NaN is never above.
size_t indices_above(const float* scores, float sign, size_t n, float threshold, uint32_t* indices);

}  // namespace prism::cpu
