// Expands weights that kernels cannot read in place: blocks with codebooks, ternary ones, nvfp4.
#pragma once

#include <cstdint>

#include "cpu/products/quantised_kernels.h"

namespace prism::cpu {

// What kernels need to expand `elements` of these blocks; `to` is null.
ExpandTask expand_task(BlockType type, const void* blocks, uint64_t elements);

// elements: a multiple of the type's block; to: elements / 32 blocks. Only for types that are not
// read in place. Uses the kernels' own function if they have one.
void expand_blocks(const QuantisedKernels& kernels, BlockType type, const void* blocks,
                   uint64_t elements, ExpandedBlock* to);

}  // namespace prism::cpu
