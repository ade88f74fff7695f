// Encodes the types with 32 elements per block: a scale, a scale and an offset, or a power of two.
#include "cpu/quantise/quantise_blocks.h"
#include "cpu/quantise/quantise_search.h"

namespace prism::cpu {

namespace {

// Packs the low four bits of the codes into the nibbles of a block.
void pack_nibbles(const uint8_t* codes, uint8_t* qs) {
  for (uint32_t i = 0; i < 16; ++i)
    qs[i] = static_cast<uint8_t>((codes[i] & 15) | codes[i + 16] << 4);
}

// Packs the fifth bits: bit e of four bytes for element e.
void pack_fifth_bits(const uint8_t* codes, uint8_t* qh) {
  for (uint32_t i = 0; i < 4; ++i) qh[i] = 0;
  for (uint32_t i = 0; i < 32; ++i)
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | (codes[i] >> 4 & 1) << (i % 8));
}

// Returns the scale; codes are relative to `lowest`, so that they are non-negative.
uint16_t encode_symmetric(const float* x, const float* w, int lowest, int highest, uint8_t* codes) {
  const float d = search_scale<32>(x, w, lowest, highest, as_half);
  const float inverse = d == 0 ? 0.0f : 1.0f / d;
  for (uint32_t i = 0; i < 32; ++i)
    codes[i] =
        static_cast<uint8_t>(static_cast<int>(code_of(x[i] * inverse, static_cast<float>(lowest),
                                                      static_cast<float>(highest))) -
                             lowest);
  return f16_from_f32(d);
}

template <class Block>
void encode_offset(const float* x, const float* w, int highest, uint8_t* codes, Block& block) {
  constexpr float kUnbounded = 65504.0f;  // the largest f16 offset
  const auto [d, m] = search_offset<32>(x, w, highest, kUnbounded, as_half);
  const float inverse = d == 0 ? 0.0f : 1.0f / d;
  for (uint32_t i = 0; i < 32; ++i)
    codes[i] =
        static_cast<uint8_t>(code_of((x[i] - m) * inverse, 0.0f, static_cast<float>(highest)));
  block.d = f16_from_f32(d);
  block.m = f16_from_f32(m);
}

// The code of the value in kMxfp4Values nearest to v.
uint8_t mxfp4_code(float v) {
  constexpr float kBetween[] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};
  const float magnitude = std::abs(v);
  int code = 0;
  for (const float bound : kBetween) code += magnitude > bound;
  return static_cast<uint8_t>(v < 0 ? code | 8 : code);
}

}  // namespace

void encode(const float* x, const float* w, BlockQ4_0& block) {
  uint8_t codes[32];
  block.d = encode_symmetric(x, w, -8, 7, codes);
  pack_nibbles(codes, block.qs);
}

void encode(const float* x, const float* w, BlockQ4_1& block) {
  uint8_t codes[32];
  encode_offset(x, w, 15, codes, block);
  pack_nibbles(codes, block.qs);
}

void encode(const float* x, const float* w, BlockQ5_0& block) {
  uint8_t codes[32];
  block.d = encode_symmetric(x, w, -16, 15, codes);
  pack_nibbles(codes, block.qs);
  pack_fifth_bits(codes, block.qh);
}

void encode(const float* x, const float* w, BlockQ5_1& block) {
  uint8_t codes[32];
  encode_offset(x, w, 31, codes, block);
  pack_nibbles(codes, block.qs);
  pack_fifth_bits(codes, block.qh);
}

void encode(const float* x, const float* w, BlockQ8_0& block) {
  // -128 is excluded, because products negate the codes as 8-bit numbers.
  uint8_t codes[32];
  block.d = encode_symmetric(x, w, -127, 127, codes);
  for (uint32_t i = 0; i < 32; ++i) block.qs[i] = static_cast<int8_t>(codes[i] - 127);
}

void encode(const float* x, const float* w, BlockMXFP4& block) {
  const float extreme = std::abs(extreme_of<32>(x));
  // The plain choice maps the extreme's power of two to that of the largest value, 12 = 1.5 * 2^3.
  int plain = 0;
  if (extreme > 0) {
    int exponent;
    std::frexp(extreme, &exponent);  // extreme = [0.5, 1) * 2^exponent
    plain = std::clamp(exponent - 1 - 3 + 128, 0, 254);
  }
  double least = HUGE_VAL;
  for (const int power : {plain, plain - 1, plain + 1}) {
    if (power < 0 || power > 254) continue;
    const float d = mxfp4_scale(static_cast<uint8_t>(power));
    uint8_t codes[32];
    double error = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      codes[i] = mxfp4_code(x[i] / d);
      const double off = x[i] - static_cast<double>(d) * kMxfp4Values[codes[i]];
      error += w[i] * off * off;
    }
    if (error < least) {
      least = error;
      block.e8m0 = static_cast<uint8_t>(power);
      pack_nibbles(codes, block.qs);
    }
  }
}

}  // namespace prism::cpu
