// Quantised products in plain C++, element by element: for every processor, and as the reference
// for the other kernels.
#include "base/types/block_formats.h"
#include "cpu/products/quantised_kernels.h"

namespace prism::cpu {
namespace {

float half(uint16_t bits) {
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  uint32_t result;
  if (exponent == 31) {
    result = 0x7F800000u | fraction << 13;
  } else if (exponent != 0) {
    result = (exponent + 112) << 23 | fraction << 13;
  } else {
    result = std::bit_cast<uint32_t>(static_cast<float>(fraction) * 0x1p-24f);
  }
  return std::bit_cast<float>(sign | result);
}

int nibble(const uint8_t* qs, uint32_t e) { return e < 16 ? qs[e] & 15 : qs[e - 16] >> 4; }
int bit(const uint8_t* qh, uint32_t e) { return qh[e / 8] >> (e % 8) & 1; }

// code(block, e) of element e; scale(block, i) and min(block, i) of group i.
int code(const BlockQ4_0& b, uint32_t e) { return nibble(b.qs, e) - 8; }
int code(const BlockQ4_1& b, uint32_t e) { return nibble(b.qs, e); }
int code(const BlockQ5_0& b, uint32_t e) { return (nibble(b.qs, e) | bit(b.qh, e) << 4) - 16; }
int code(const BlockQ5_1& b, uint32_t e) { return nibble(b.qs, e) | bit(b.qh, e) << 4; }
int code(const BlockQ8_0& b, uint32_t e) { return b.qs[e]; }
int code(const BlockIQ4_NL& b, uint32_t e) { return kIq4Values[nibble(b.qs, e)]; }
int code(const BlockMXFP4& b, uint32_t e) { return kMxfp4Values[nibble(b.qs, e)]; }
int code(const BlockIQ4_XS& b, uint32_t e) {
  return kIq4Values[nibble(b.qs + 16 * (e / 32), e % 32)];
}
int code(const BlockQ2_K& b, uint32_t e) {
  return b.qs[32 * (e / 128) + e % 32] >> (2 * (e / 32 % 4)) & 3;
}
int code(const BlockQ3_K& b, uint32_t e) {
  const int low = b.qs[32 * (e / 128) + e % 32] >> (2 * (e / 32 % 4)) & 3;
  return (low | (b.hmask[e % 32] >> (e / 32) & 1) << 2) - 4;
}
int code(const BlockQ4_K& b, uint32_t e) {
  return b.qs[32 * (e / 64) + e % 32] >> (4 * (e / 32 % 2)) & 15;
}
int code(const BlockQ5_K& b, uint32_t e) {
  const int low = b.qs[32 * (e / 64) + e % 32] >> (4 * (e / 32 % 2)) & 15;
  return low | (b.qh[e % 32] >> (e / 32) & 1) << 4;
}
int code(const BlockQ6_K& b, uint32_t e) {
  const uint32_t h = e / 128, j = e / 32 % 4, l = e % 32;
  const int low = b.ql[64 * h + 32 * (j % 2) + l] >> (4 * (j / 2)) & 15;
  return (low | (b.qh[32 * h + l] >> (2 * j) & 3) << 4) - 32;
}

int code(const ExpandedBlock& b, uint32_t e) { return b.values[e]; }

float scale(const ExpandedBlock& b, uint32_t i) { return b.scales[i]; }

template <class Block>
float scale(const Block& b, uint32_t i) {
  if constexpr (Block::kType == BlockType::mxfp4) {
    return mxfp4_scale(b.e8m0);
  } else {
    const float d = half(b.d);
    if constexpr (Block::kType == BlockType::q2_k) return d * static_cast<float>(b.scales[i] & 15);
    if constexpr (Block::kType == BlockType::q3_k)
      return d * static_cast<float>(q3_k_scale(b.scales, i) - 32);
    if constexpr (Block::kType == BlockType::q4_k || Block::kType == BlockType::q5_k)
      return d * static_cast<float>(k_scale_min(b.scales, i).scale);
    if constexpr (Block::kType == BlockType::q6_k) return d * static_cast<float>(b.scales[i]);
    if constexpr (Block::kType == BlockType::iq4_xs)
      return d * static_cast<float>(iq4_xs_scale(b, i) - 32);
    return d;
  }
}

// The offset added to every element of the group.
template <class Block>
float offset(const Block& b, uint32_t i) {
  if constexpr (Block::kType == BlockType::q4_1 || Block::kType == BlockType::q5_1)
    return half(b.m);
  if constexpr (Block::kType == BlockType::q2_k)
    return -half(b.dmin) * static_cast<float>(b.scales[i] >> 4);
  if constexpr (Block::kType == BlockType::q4_k || Block::kType == BlockType::q5_k)
    return -half(b.dmin) * static_cast<float>(k_scale_min(b.scales, i).min);
  return 0.0f;
}

float offset(const ExpandedBlock&, uint32_t) { return 0; }

template <class Block>
constexpr uint32_t group_of() {
  return quantised_group(Block::kType);
}
template <>
constexpr uint32_t group_of<ExpandedBlock>() {
  return 16;
}

template <class Block>
float dot(const Block* w, const int8_t* x, const float* scales, uint64_t k) {
  constexpr uint32_t kGroup = group_of<Block>();
  float total = 0;
  for (uint64_t b = 0; b < k / Block::kElements; ++b, x += Block::kElements) {
    float block_total = 0;
    for (uint32_t i = 0; i < Block::kElements / kGroup; ++i) {
      int32_t products = 0, sum = 0;
      for (uint32_t e = i * kGroup; e < (i + 1) * kGroup; ++e) {
        products += code(w[b], e) * x[e];
        sum += x[e];
      }
      block_total +=
          scale(w[b], i) * static_cast<float>(products) + offset(w[b], i) * static_cast<float>(sum);
    }
    total += block_total * scales[b];
  }
  return total;
}

template <class Block>
void rows(const QuantisedRowsTask& task) {
  for (uint64_t row = 0; row < task.rows; ++row) {
    const auto* w = reinterpret_cast<const Block*>(static_cast<const uint8_t*>(task.weights) +
                                                   row * task.row_bytes);
    for (uint32_t n = 0; n < task.count; ++n)
      task.y[n][row] = dot(w, task.values[n], task.scales[n], task.k);
  }
}

constexpr QuantisedKernels kKernels = {
    "scalar",
    [] { return true; },
    0,
    0,
    0,
    {rows<BlockQ4_0>, rows<BlockQ4_1>, rows<BlockQ5_0>, rows<BlockQ5_1>, rows<BlockQ8_0>,
     rows<BlockQ2_K>, rows<BlockQ3_K>, rows<BlockQ4_K>, rows<BlockQ5_K>, rows<BlockQ6_K>,
     rows<BlockIQ4_NL>, rows<BlockIQ4_XS>, rows<BlockMXFP4>, rows<ExpandedBlock>},
    {}};

}  // namespace

const QuantisedKernels* scalar_quantised_kernels() { return &kKernels; }

}  // namespace prism::cpu
