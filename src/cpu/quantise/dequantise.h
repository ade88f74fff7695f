// Decodes blocks of the quantised types, as files hold them (base/types/block_formats.h), to
// floats.
#pragma once

#include <cstdint>

#include "prism/element_type.h"

namespace prism {
class ThreadPool;
}

namespace prism::cpu {

// out[i] = element i of the blocks. Throws an Error where elements are not a multiple of the type's
// block. Each element is computed as base/types/block_formats.h writes it, rounded after every
// operation, so that the result is the same on every machine. blocks must be aligned to 2 bytes.
void dequantise(BlockType type, const void* blocks, float* out, uint64_t elements);

// The same, shared by the threads of a pool: for whole tensors, whose rows are whole blocks.
void dequantise(BlockType type, const void* blocks, float* out, uint64_t elements,
                ThreadPool& pool);

}  // namespace prism::cpu
