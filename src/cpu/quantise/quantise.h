// Encodes floats as blocks of the quantised types, searching scales for the least squared error.
#pragma once

#include <cstdint>

#include "prism/element_type.h"

namespace prism {
class ThreadPool;
}

namespace prism::cpu {

// Whether quantise can write a type: q4_0 to q8_0, q2_k to q6_k and mxfp4.
bool can_quantise(BlockType type);

// Encodes x as blocks (base/types/block_formats.h) that minimise the sum of importance * (x -
// element)^2 over each block. importance holds one non-negative weight per element; null, or a
// block of zeros, counts as all 1. The error is never larger than with plain rounding: scales from
// the extremes of a block, every element to its nearest code. Throws an Error for a type that
// cannot be written, for elements that are not whole blocks, and for an element that is not finite
// or too large for the type's scales, naming it.
void quantise(BlockType type, const float* x, void* blocks, uint64_t elements,
              const float* importance = nullptr);

// Encodes a tensor of rows on a thread pool; importance holds one weight per column, or is null.
void quantise(BlockType type, const float* x, void* blocks, uint64_t rows, uint64_t columns,
              const float* importance, ThreadPool& pool);

}  // namespace prism::cpu
