// Encodes floats as blocks of the quantised types, with scales searched for the least squared
// error.
#pragma once

#include <cstdint>

#include "prism/element_type.h"

namespace prism {
class ThreadPool;
}

namespace prism::cpu {

// Whether quantise can write a type: all but iq4_nl and iq4_xs.
bool can_quantise(BlockType type);

// blocks = the blocks (base/types/block_formats.h) whose elements come near x. What is made least
// is the sum of importance * (x - element)^2 over each block; importance holds one weight, 0 or
// more, for each element (none: all 1; a block whose weights are all 0 counts as all 1). Never
// further off than the plain way: scales from the extremes of a block, every element to its nearest
// code. Throws an Error for a type that cannot be written, elements that are not whole blocks, and
// for an element that is not finite or beyond what the type's scales can reach, which it names.
void quantise(BlockType type, const float* x, void* blocks, uint64_t elements,
              const float* importance = nullptr);

// A tensor of rows, shared by the threads of a pool; importance holds one weight a column (or is
// null).
void quantise(BlockType type, const float* x, void* blocks, uint64_t rows, uint64_t columns,
              const float* importance, ThreadPool& pool);

}  // namespace prism::cpu
