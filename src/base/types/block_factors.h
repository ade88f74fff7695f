// Gives blocks of arbitrary bytes sensible factors, for cases that check kernels.
#pragma once

#include "prism/element_type.h"

namespace prism {

// Sets the f16 factors of one block, so that its elements reach about `size`, whatever its other
// bytes are. Exponents and 8-bit floats, which have no sign, are moved near 1, for size = 1.
void set_block_factors(BlockType type, void* block, float size);

}  // namespace prism
