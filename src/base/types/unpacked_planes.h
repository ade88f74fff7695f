// Converts unpacked blocks to and from the planes of a GPU's layout, by the type's PlaneFormat.
#pragma once

#include <cstdint>

#include "base/types/gpu_block_layout.h"
#include "base/types/unpacked_block.h"

namespace prism {

// Where the parts of one block are; Byte is uint8_t or const uint8_t.
template <class Byte>
struct UnpackedPlanes {
  Byte *quants, *high, *scales, *factors;
};

void unpacked_to_planes(const PlaneFormat& format, const UnpackedBlock& block,
                        const UnpackedPlanes<uint8_t>& planes);
void unpacked_from_planes(const PlaneFormat& format, const UnpackedPlanes<const uint8_t>& planes,
                          UnpackedBlock& block);

}  // namespace prism
