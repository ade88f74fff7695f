// Knows how large the product of codes and scales of a type can be.
#include "base/types/block_factors.h"

#include "base/types/block_formats.h"

namespace prism {

namespace {

// The largest |x / d| of a type.
constexpr float reach(BlockType type) {
  switch (type) {
    case BlockType::q4_0:
      return 8;
    case BlockType::q4_1:
      return 15;
    case BlockType::q5_0:
      return 16;
    case BlockType::q5_1:
      return 31;
    case BlockType::q8_0:
    case BlockType::iq4_nl:
      return 127;
    case BlockType::q2_k:
      return 3 * 15;
    case BlockType::q3_k:
      return 3 * 32;
    case BlockType::q4_k:
      return 15 * 63;
    case BlockType::q5_k:
      return 31 * 63;
    case BlockType::q6_k:
      return 32 * 127;
    case BlockType::iq4_xs:
      return 127 * 32;
    case BlockType::iq1_s:
    case BlockType::iq1_m:
      return 9 * 15 / 8.0f;
    case BlockType::iq2_xxs:
    case BlockType::iq2_xs:
    case BlockType::iq2_s:
      return 43 * 31 / 8.0f;
    case BlockType::iq3_xxs:
      return 62 * 31 / 4.0f;
    case BlockType::iq3_s:
      return 15 * 31;
    case BlockType::tq1_0:
    case BlockType::tq2_0:
      return 2;
    case BlockType::mxfp4:
    case BlockType::nvfp4:
      break;
  }
  return 1;
}

}  // namespace

void set_block_factors(BlockType type, void* block, float size) {
  const uint16_t d = f16_from_f32(size / reach(type));
  with_block(type, [&]<class Block>(Block*) {
    auto& to = *static_cast<Block*>(block);
    if constexpr (requires { to.d; }) to.d = d;
    if constexpr (requires { to.m; }) to.m = f16_from_f32(size);
    if constexpr (requires { to.dmin; })  // half, that the largest codes and mins do not cancel out
      to.dmin = f16_from_f32(size / (Block::kType == BlockType::q2_k ? 30.0f : 126.0f));
    if constexpr (requires { to.e8m0; }) to.e8m0 = static_cast<uint8_t>(120 | (to.e8m0 & 7));
    if constexpr (Block::kType == BlockType::nvfp4)  // up to 0.3125 times 6
      for (uint8_t& scale : to.scales) scale = static_cast<uint8_t>(27 + (scale & 15));
    if constexpr (Block::kType == BlockType::iq1_m)
      for (uint32_t i = 0; i < 4; ++i)
        to.scales[i] = static_cast<uint16_t>((to.scales[i] & 0x0fff) | (d >> (4 * i) & 15) << 12);
  });
}

}  // namespace prism
