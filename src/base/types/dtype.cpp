// Names, sizes and 16-bit float conversions of element types.
#include "prism/dtype.h"

#include <array>
#include <bit>

namespace prism {
namespace {

struct Entry {
  const char* name;
  size_t bytes;
};
constexpr std::array<Entry, kDTypeCount> kEntries = {{
    {"b1", 4},
    {"i8", 1},
    {"u8", 1},
    {"i16", 2},
    {"u16", 2},
    {"i32", 4},
    {"u32", 4},
    {"i64", 8},
    {"u64", 8},
    {"f16", 2},
    {"bf16", 2},
    {"f32", 4},
    {"f64", 8},
}};

}  // namespace

const char* dtype_name(DType type) { return kEntries[static_cast<size_t>(type)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kEntries.size(); ++i)
    if (name == kEntries[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

size_t dtype_bytes(DType type) { return kEntries[static_cast<size_t>(type)].bytes; }

uint16_t f16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // quiet NaN
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65536 and above
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is subnormal: adding 0.5 aligns the mantissa, and the adder rounds to
    // even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float f32_from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t bf16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float f32_from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace prism
