// Numbers for the shims: 16-bit floats and the dialects' math functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace shim {

inline uint16_t f16_bits(double value) {
  const uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00u);
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00u);
  // Below the normal range, rounds to multiples of the smallest subnormal.
  const double step = magnitude < 0x1p-14 ? 0x1p-24 : std::ldexp(1.0, std::ilogb(magnitude) - 10);
  const double rounded = std::nearbyint(magnitude / step) * step;
  if (rounded < 0x1p-14)
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(rounded * 0x1p24));
  const uint32_t wide = std::bit_cast<uint32_t>(static_cast<float>(rounded));
  return static_cast<uint16_t>(sign | ((wide - 0x38000000u) >> 13));
}

inline float f16_value(uint16_t bits) {
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  float magnitude = std::ldexp(static_cast<float>(exponent ? mantissa + 1024 : mantissa),
                               static_cast<int>(exponent ? exponent : 1) - 25);
  if (exponent == 31) magnitude = std::bit_cast<float>(0x7f800000u | (mantissa << 13));
  return (bits & 0x8000u) ? -magnitude : magnitude;
}

inline uint16_t bf16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// f16 arithmetic: each operation is computed in f32 and rounded, which gives correctly rounded + -
// * / and sqrt.
struct half {
  uint16_t bits;
  half() = default;
  half(float value) : bits(f16_bits(value)) {}
  explicit half(double value) : bits(f16_bits(value)) {}
  explicit half(int value) : bits(f16_bits(value)) {}
  explicit half(unsigned value) : bits(f16_bits(value)) {}
  explicit half(bool value) : half(value ? 1.0f : 0.0f) {}
  operator float() const { return f16_value(bits); }
  half operator-() const { return half(-f16_value(bits)); }
};
inline half operator+(half a, half b) { return half(float(a) + float(b)); }
inline half operator-(half a, half b) { return half(float(a) - float(b)); }
inline half operator*(half a, half b) { return half(float(a) * float(b)); }
inline half operator/(half a, half b) { return half(float(a) / float(b)); }
inline bool operator<(half a, half b) { return float(a) < float(b); }
inline bool operator>(half a, half b) { return float(a) > float(b); }
inline bool operator<=(half a, half b) { return float(a) <= float(b); }
inline bool operator>=(half a, half b) { return float(a) >= float(b); }
inline bool operator==(half a, half b) { return float(a) == float(b); }
inline bool operator!=(half a, half b) { return float(a) != float(b); }

template <class T>
T multiply_high(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 32);
}

inline int dot4(uint32_t a, uint32_t b, bool is_signed) {
  int sum = 0;
  for (int i = 0; i < 32; i += 8)
    sum += is_signed ? static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i)
                     : static_cast<uint8_t>(a >> i) * static_cast<uint8_t>(b >> i);
  return sum;
}

template <class T>
T wrapping_add(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
}

// Only fibers of one thread share memory, so plain reads and writes are atomic.
template <class T>
T replace(volatile T* p, T value) {
  const T old = *p;
  *p = value;
  return old;
}
template <class T>
T atomic_sum(volatile T* p, T value) {
  if constexpr (std::is_same_v<T, int>)
    return replace(p, wrapping_add(*p, value));
  else
    return replace(p, static_cast<T>(*p + value));
}
template <class T>
T atomic_smaller(volatile T* p, T value) {
  return replace<T>(p, value < *p ? value : *p);
}
template <class T>
T atomic_larger(volatile T* p, T value) {
  return replace<T>(p, *p < value ? value : *p);
}
template <class T>
T atomic_both(volatile T* p, T value) {
  return replace<T>(p, *p & value);
}
template <class T>
T atomic_either(volatile T* p, T value) {
  return replace<T>(p, *p | value);
}
template <class T>
T atomic_differing(volatile T* p, T value) {
  return replace<T>(p, *p ^ value);
}
template <class T>
T atomic_compare(volatile T* p, T expected, T value) {
  const T old = *p;
  if (old == expected) *p = value;
  return old;
}

}  // namespace shim

// Math functions under their C names for float, double and half, in the global namespace.
#define PRISM_SHIM_MATH(name)                         \
  inline float name(float x) { return std::name(x); } \
  inline shim::half name(shim::half x) { return shim::half(std::name(float(x))); }
