// Expands blocks through their unpacked form.
#include "cpu/products/expanded_rows.h"

#include <cmath>
#include <cstring>

#include "base/types/block_formats.h"
#include "base/types/gpu_block_layout.h"

namespace prism::cpu {

namespace {

template <UnpackableBlock Block>
void expand(const Block& block, ExpandedBlock* to) {
  UnpackedBlock unpacked;
  unpack(block, unpacked);
  const float d = std::ldexp(f32_from_f16(unpacked.d), plane_format(Block::kType).exponent);
  for (uint32_t i = 0; i < 8; ++i) {
    for (uint32_t half = 0; half < 2; ++half)
      to[i].scales[half] = d * static_cast<float>(unpacked.scales[2 * i + half]);
    std::memcpy(to[i].values, unpacked.values + 32 * i, 32);
  }
}

void expand(const BlockNVFP4& block, ExpandedBlock* to) {
  for (uint32_t s = 0; s < 4; ++s) {
    ExpandedBlock& into = to[s / 2];
    into.scales[s % 2] = nvfp4_scale(block.scales[s]);
    int8_t* values = into.values + 16 * (s % 2);
    for (uint32_t i = 0; i < 8; ++i) {
      values[i] = kMxfp4Values[block.qs[8 * s + i] & 15];
      values[i + 8] = kMxfp4Values[block.qs[8 * s + i] >> 4];
    }
  }
}

}  // namespace

void expand_blocks(BlockType type, const void* blocks, uint64_t elements, ExpandedBlock* to) {
  with_block(type, [&]<class Block>(Block*) {
    if constexpr (requires(const Block& block) { expand(block, to); }) {
      const Block* from = static_cast<const Block*>(blocks);
      for (uint64_t b = 0; b < elements / Block::kElements; ++b)
        expand(from[b], to + b * (Block::kElements / 32));
    }
  });
}

}  // namespace prism::cpu
