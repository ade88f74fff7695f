// Decodes blocks of the quantised types in file layout (base/types/block_formats.h) to floats.
#pragma once

#include <cstdint>

#include "prism/element_type.h"

namespace prism {
class ThreadPool;
}

namespace prism::cpu {

// out[i] = element i of the blocks. Throws an Error if elements is no multiple of the type's block.
// Each element is computed as defined in base/types/block_formats.h, rounded after every operation,
// so that the result is the same on every machine. blocks must be aligned to 2 bytes.
void dequantise(BlockType type, const void* blocks, float* out, uint64_t elements);

// The same on a thread pool: for whole tensors, whose rows are whole blocks.
void dequantise(BlockType type, const void* blocks, float* out, uint64_t elements,
                ThreadPool& pool);

}  // namespace prism::cpu
