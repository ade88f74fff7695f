// Decodes one block of each quantised type with plain loops that compilers vectorise.
#include "cpu/quantise/dequantise.h"

#include <fmt/format.h>

#include "base/system/thread_pool.h"
#include "base/types/block_formats.h"
#include "base/types/gpu_block_layout.h"
#include "prism/error.h"

namespace prism::cpu {

namespace {

// Sixteen bytes of nibbles of a sub-block of 32: the low nibbles first.
template <class Convert>
void decode_nibbles(const uint8_t* qs, float* y, Convert convert) {
  for (uint32_t i = 0; i < 16; ++i) {
    y[i] = convert(qs[i] & 15);
    y[i + 16] = convert(qs[i] >> 4);
  }
}

// The same with a fifth bit: bit e of a word for element e.
template <class Convert>
void decode_fives(const uint8_t* qs, const uint8_t* qh, float* y, Convert convert) {
  const uint32_t bits = qh[0] | qh[1] << 8 | qh[2] << 16 | static_cast<uint32_t>(qh[3]) << 24;
  for (uint32_t i = 0; i < 16; ++i) {
    y[i] = convert(static_cast<int32_t>((qs[i] & 15) | (bits >> i << 4 & 16)));
    y[i + 16] = convert(static_cast<int32_t>((qs[i] >> 4) | (bits >> (i + 16) << 4 & 16)));
  }
}

void decode(const BlockQ4_0& block, float* y) {
  const float d = f32_from_f16(block.d);
  decode_nibbles(block.qs, y, [d](int32_t q) { return d * static_cast<float>(q - 8); });
}

void decode(const BlockQ4_1& block, float* y) {
  const float d = f32_from_f16(block.d), m = f32_from_f16(block.m);
  decode_nibbles(block.qs, y, [d, m](int32_t q) { return d * static_cast<float>(q) + m; });
}

void decode(const BlockQ5_0& block, float* y) {
  const float d = f32_from_f16(block.d);
  decode_fives(block.qs, block.qh, y, [d](int32_t q) { return d * static_cast<float>(q - 16); });
}

void decode(const BlockQ5_1& block, float* y) {
  const float d = f32_from_f16(block.d), m = f32_from_f16(block.m);
  decode_fives(block.qs, block.qh, y, [d, m](int32_t q) { return d * static_cast<float>(q) + m; });
}

void decode(const BlockQ8_0& block, float* y) {
  const float d = f32_from_f16(block.d);
  for (uint32_t i = 0; i < 32; ++i) y[i] = d * static_cast<float>(block.qs[i]);
}

void decode(const BlockQ2_K& block, float* y) {
  const float d = f32_from_f16(block.d), dmin = f32_from_f16(block.dmin);
  for (uint32_t s = 0; s < 16; ++s) {  // sub-blocks of 16
    const float scale = d * static_cast<float>(block.scales[s] & 15);
    const float min = dmin * static_cast<float>(block.scales[s] >> 4);
    const uint8_t* qs = block.qs + 32 * (s / 8) + 16 * (s % 2);
    const uint32_t shift = 2 * (s / 2 % 4);
    for (uint32_t i = 0; i < 16; ++i)
      y[16 * s + i] = scale * static_cast<float>(qs[i] >> shift & 3) - min;
  }
}

void decode(const BlockQ3_K& block, float* y) {
  const float d = f32_from_f16(block.d);
  for (uint32_t s = 0; s < 16; ++s) {
    const float scale = d * static_cast<float>(q3_k_scale(block.scales, s) - 32);
    const uint8_t* qs = block.qs + 32 * (s / 8) + 16 * (s % 2);
    const uint8_t* high = block.hmask + 16 * (s % 2);
    const uint32_t shift = 2 * (s / 2 % 4), bit = s / 2;
    for (uint32_t i = 0; i < 16; ++i) {
      const int32_t q = (qs[i] >> shift & 3) | (high[i] >> bit & 1) << 2;
      y[16 * s + i] = scale * static_cast<float>(q - 4);
    }
  }
}

void decode(const BlockQ4_K& block, float* y) {
  const float d = f32_from_f16(block.d), dmin = f32_from_f16(block.dmin);
  for (uint32_t s = 0; s < 8; ++s) {  // sub-blocks of 32
    const ScaleMin pair = k_scale_min(block.scales, s);
    const float scale = d * static_cast<float>(pair.scale);
    const float min = dmin * static_cast<float>(pair.min);
    const uint8_t* qs = block.qs + 32 * (s / 2);
    const uint32_t shift = 4 * (s % 2);
    for (uint32_t i = 0; i < 32; ++i)
      y[32 * s + i] = scale * static_cast<float>(qs[i] >> shift & 15) - min;
  }
}

void decode(const BlockQ5_K& block, float* y) {
  const float d = f32_from_f16(block.d), dmin = f32_from_f16(block.dmin);
  for (uint32_t s = 0; s < 8; ++s) {
    const ScaleMin pair = k_scale_min(block.scales, s);
    const float scale = d * static_cast<float>(pair.scale);
    const float min = dmin * static_cast<float>(pair.min);
    const uint8_t* qs = block.qs + 32 * (s / 2);
    const uint32_t shift = 4 * (s % 2);
    for (uint32_t i = 0; i < 32; ++i) {
      const int32_t q = (qs[i] >> shift & 15) | (block.qh[i] >> s & 1) << 4;
      y[32 * s + i] = scale * static_cast<float>(q) - min;
    }
  }
}

void decode(const BlockQ6_K& block, float* y) {
  const float d = f32_from_f16(block.d);
  for (uint32_t s = 0; s < 16; ++s) {
    const float scale = d * static_cast<float>(block.scales[s]);
    const uint32_t half = s / 8, j = s / 2 % 4, place = 16 * (s % 2);
    const uint8_t* low = block.ql + 64 * half + 32 * (j % 2) + place;
    const uint8_t* high = block.qh + 32 * half + place;
    for (uint32_t i = 0; i < 16; ++i) {
      const int32_t q = (low[i] >> (4 * (j / 2)) & 15) | (high[i] >> (2 * j) & 3) << 4;
      y[16 * s + i] = scale * static_cast<float>(q - 32);
    }
  }
}

void decode(const BlockIQ4_NL& block, float* y) {
  const float d = f32_from_f16(block.d);
  decode_nibbles(block.qs, y, [d](int32_t q) { return d * static_cast<float>(kIq4Values[q]); });
}

void decode(const BlockIQ4_XS& block, float* y) {
  const float d = f32_from_f16(block.d);
  for (uint32_t s = 0; s < 8; ++s) {
    const float scale = d * static_cast<float>(iq4_xs_scale(block, s) - 32);
    decode_nibbles(block.qs + 16 * s, y + 32 * s,
                   [scale](int32_t q) { return scale * static_cast<float>(kIq4Values[q]); });
  }
}

void decode(const BlockMXFP4& block, float* y) {
  const float d = mxfp4_scale(block.e8m0);
  decode_nibbles(block.qs, y, [d](int32_t q) { return d * static_cast<float>(kMxfp4Values[q]); });
}

void decode(const BlockNVFP4& block, float* y) {
  for (uint32_t s = 0; s < 4; ++s) {
    const float d = nvfp4_scale(block.scales[s]);
    for (uint32_t i = 0; i < 8; ++i) {
      const uint8_t both = block.qs[8 * s + i];
      y[16 * s + i] = d * static_cast<float>(kMxfp4Values[both & 15]);
      y[16 * s + i + 8] = d * static_cast<float>(kMxfp4Values[both >> 4]);
    }
  }
}

template <UnpackableBlock Block>
void decode(const Block& block, float* y) {
  UnpackedBlock unpacked;
  unpack(block, unpacked);
  constexpr int kExponent = plane_format(Block::kType).exponent;
  static_assert(kExponent <= 0);
  const float d = f32_from_f16(unpacked.d) * (1.0f / static_cast<float>(1 << -kExponent));
  for (uint32_t s = 0; s < 16; ++s) {
    const float scale = d * static_cast<float>(unpacked.scales[s]);
    for (uint32_t i = 16 * s; i < 16 * s + 16; ++i)
      y[i] = scale * static_cast<float>(unpacked.values[i]);
  }
}

void dequantise_on(BlockType type, const void* blocks, float* out, uint64_t elements,
                   ThreadPool* pool) {
  const BlockInfo& info = block_info(type);
  if (elements % info.elements != 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("dequantise {}: {} elements are not whole blocks of {}", info.name,
                            elements, info.elements));
  with_block(type, [&]<class Block>(Block*) {
    const auto range = [=](uint64_t first, uint64_t last) {
      const Block* from = static_cast<const Block*>(blocks);
      for (uint64_t b = first; b < last; ++b) decode(from[b], out + b * Block::kElements);
    };
    constexpr uint64_t kChunkElements = 1 << 15;  // 128 KiB of floats, which fit a core's cache
    const uint64_t count = elements / Block::kElements;
    if (pool)
      pool->parallel_for(count, kChunkElements / Block::kElements, range);
    else
      range(0, count);
  });
}

}  // namespace

void dequantise(BlockType type, const void* blocks, float* out, uint64_t elements) {
  dequantise_on(type, blocks, out, elements, nullptr);
}

void dequantise(BlockType type, const void* blocks, float* out, uint64_t elements,
                ThreadPool& pool) {
  dequantise_on(type, blocks, out, elements, &pool);
}

}  // namespace prism::cpu
