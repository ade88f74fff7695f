// Expands blocks through their unpacked form.
#include "cpu/products/expanded_rows.h"

#include <array>
#include <cstring>

#include "base/types/block_formats.h"
#include "base/types/codebooks.h"
#include "base/types/gpu_block_layout.h"
#include "cpu/products/codebook_words.h"

namespace prism::cpu {

namespace {

template <UnpackableBlock Block>
void expand(const Block& block, ExpandedBlock* to) {
  UnpackedBlock unpacked;
  unpack(block, unpacked);
  constexpr int kExponent = plane_format(Block::kType).exponent;
  static_assert(kExponent <= 0);
  const float d = f32_from_f16(unpacked.d) * (1.0f / static_cast<float>(1 << -kExponent));
  for (uint32_t i = 0; i < 8; ++i) {
    for (uint32_t half = 0; half < 2; ++half)
      to[i].scales[half] = d * static_cast<float>(unpacked.scales[2 * i + half]);
    std::memcpy(to[i].values, unpacked.values + 32 * i, 32);
  }
}

// kMxfp4Values of eight codes, one in each byte: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives. Codes
// from 4 on add their low two bits, and 7 adds two more.
uint64_t fp4_values(uint64_t codes) {
  constexpr uint64_t kOnes = 0x0101010101010101ull;
  const uint64_t size = codes & 7 * kOnes, large = size >> 2 & kOnes;
  const uint64_t magnitude = size + (size & large * 3) + ((size & size >> 1 & large) << 1);
  const uint64_t negative = ((0x80 * kOnes) - magnitude) ^ (0x80 * kOnes);
  const uint64_t mask = (codes >> 3 & kOnes) * 255;
  return (magnitude & ~mask) | (negative & mask);
}

void expand(const BlockNVFP4& block, ExpandedBlock* to) {
  for (uint32_t s = 0; s < 4; ++s) {
    ExpandedBlock& into = to[s / 2];
    into.scales[s % 2] = nvfp4_scale(block.scales[s]);
    uint64_t both;
    std::memcpy(&both, block.qs + 8 * s, 8);
    constexpr uint64_t kLow = 0x0f0f0f0f0f0f0f0full;
    const uint64_t values[2] = {fp4_values(both & kLow), fp4_values(both >> 4 & kLow)};
    std::memcpy(into.values + 16 * (s % 2), values, 16);
  }
}

const uint64_t* book_of(BlockType type) {
  const Codebooks& books = codebooks();
  switch (type) {
    case BlockType::iq1_s:
    case BlockType::iq1_m:
      return books.iq1.values.data();
    case BlockType::iq2_xxs:
      return books.iq2_xxs.values.data();
    case BlockType::iq2_xs:
      return books.iq2_xs.values.data();
    case BlockType::iq2_s:
      return books.iq2_s.values.data();
    case BlockType::iq3_xxs:
      return books.iq3_xxs.values.data();
    case BlockType::iq3_s:
      return books.iq3_s.values.data();
    default:
      return nullptr;
  }
}

const float* nvfp4_scales() {
  static const std::array<float, 256> scales = [] {
    std::array<float, 256> all{};
    for (uint32_t code = 0; code < 256; ++code) all[code] = nvfp4_scale(static_cast<uint8_t>(code));
    return all;
  }();
  return scales.data();
}

}  // namespace

ExpandTask expand_task(BlockType type, const void* blocks, uint64_t elements) {
  const CodebookWords* words = codebook_words(type);
  const int exponent = type == BlockType::nvfp4 ? 0 : plane_format(type).exponent;
  return {type,
          blocks,
          elements,
          nullptr,
          book_of(type),
          nvfp4_scales(),
          1.0f / static_cast<float>(1 << -exponent),
          words ? words->entries.data() : nullptr,
          words ? words->values.data() : nullptr};
}

void expand_blocks(const QuantisedKernels& kernels, BlockType type, const void* blocks,
                   uint64_t elements, ExpandedBlock* to) {
  if (kernels.expand) {
    ExpandTask task = expand_task(type, blocks, elements);
    task.to = to;
    kernels.expand(task);
    return;
  }
  with_block(type, [&]<class Block>(Block*) {
    if constexpr (requires(const Block& block) { expand(block, to); }) {
      const Block* from = static_cast<const Block*>(blocks);
      for (uint64_t b = 0; b < elements / Block::kElements; ++b)
        expand(from[b], to + b * (Block::kElements / 32));
    }
  });
}

}  // namespace prism::cpu
