// The element types of buffers and kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#pragma GCC visibility push(default)

namespace prism {

enum class DType : uint8_t { b1, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 };
inline constexpr int kDTypeCount = 13;

const char* dtype_name(DType type);
std::optional<DType> dtype_from_name(std::string_view name);

// Bytes of one stored element. Kernels keep b1 in registers; a stored b1 takes 4 bytes.
size_t dtype_bytes(DType type);

constexpr bool is_float(DType t) {
  return t == DType::f16 || t == DType::bf16 || t == DType::f32 || t == DType::f64;
}
constexpr bool is_signed_int(DType t) {
  return t == DType::i8 || t == DType::i16 || t == DType::i32 || t == DType::i64;
}
constexpr bool is_unsigned_int(DType t) {
  return t == DType::u8 || t == DType::u16 || t == DType::u32 || t == DType::u64;
}
constexpr bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }

// The type of a loaded element: narrow integers widen to 32 bits, f16 and bf16 to f32.
constexpr DType widened(DType t) {
  switch (t) {
    case DType::i8:
    case DType::i16:
      return DType::i32;
    case DType::u8:
    case DType::u16:
      return DType::u32;
    case DType::f16:
    case DType::bf16:
      return DType::f32;
    default:
      return t;
  }
}

// Conversions of 16-bit floats, rounded to nearest even. Every device must give the same bits.
uint16_t f16_from_f32(float value);
float f32_from_f16(uint16_t bits);
uint16_t bf16_from_f32(float value);
float f32_from_bf16(uint16_t bits);

}  // namespace prism

#pragma GCC visibility pop
