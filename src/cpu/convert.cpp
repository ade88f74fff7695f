// Conversion between stored elements and register types: plain loops for every pair, vector code
// for 16-bit floats.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "cpu/elementwise.h"
#include "cpu/elementwise_parts.h"
#include "prism/error.h"

namespace prism::cpu {
namespace {

// Wrappers for types that C++ does not have.
struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

template <class To, class From>
inline To converted(From x) {
  if constexpr (std::is_same_v<From, F16>) {
    return converted<To>(prism::f32_from_f16(x.bits));
  } else if constexpr (std::is_same_v<From, Bf16>) {
    return converted<To>(prism::f32_from_bf16(x.bits));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return converted<To>(static_cast<int32_t>(x.byte != 0));
  } else if constexpr (std::is_same_v<To, F16>) {
    return {prism::f16_from_f32(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, Bf16>) {
    return {prism::bf16_from_f32(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != 0 ? 1 : 0)};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // As a float, the largest integer may round up to a power of two; saturate from there on.
    using Limits = std::numeric_limits<To>;
    constexpr From kLeast = static_cast<From>(Limits::min());
    constexpr From kMost = static_cast<From>(Limits::max());
    if (x != x) return 0;
    if (x <= kLeast) return Limits::min();
    if (x >= kMost) return Limits::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void convert_all(const void* from, ptrdiff_t stride, void* to, size_t n) {
  if (n == 0) return;  // pointers may be null
  const From* in = static_cast<const From*>(from);
  To* out = static_cast<To*>(to);
  if (stride == 1) {
    if constexpr (std::is_same_v<From, To>)
      std::memcpy(out, in, n * sizeof(To));
    else if constexpr (std::is_same_v<From, F16> && std::is_same_v<To, float>)
      f32_from_f16(static_cast<const uint16_t*>(from), out, n);
    else if constexpr (std::is_same_v<From, Bf16> && std::is_same_v<To, float>)
      f32_from_bf16(static_cast<const uint16_t*>(from), out, n);
    else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, F16>)
      f16_from_f32(in, static_cast<uint16_t*>(to), n);
    else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Bf16>)
      bf16_from_f32(in, static_cast<uint16_t*>(to), n);
    else
      for (size_t i = 0; i < n; ++i) out[i] = converted<To>(in[i]);
  } else if (stride == 0) {
    const To value = converted<To>(*in);
    for (size_t i = 0; i < n; ++i) out[i] = value;
  } else {
    for (size_t i = 0; i < n; ++i, in += stride) out[i] = converted<To>(*in);
  }
}

using Loop = void (*)(const void* from, ptrdiff_t stride, void* to, size_t n);

// The loop between a stored type and the register type Reg; kLoad selects the direction.
template <class Reg, bool kLoad>
Loop loop_of(DType stored) {
  const auto pick = []<class Stored>(Stored) -> Loop {
    if constexpr (kLoad)
      return convert_all<Stored, Reg>;
    else
      return convert_all<Reg, Stored>;
  };
  switch (stored) {
    case DType::b1:
      return pick(Bool());
    case DType::i8:
      return pick(int8_t());
    case DType::u8:
      return pick(uint8_t());
    case DType::i16:
      return pick(int16_t());
    case DType::u16:
      return pick(uint16_t());
    case DType::i32:
      return pick(int32_t());
    case DType::u32:
      return pick(uint32_t());
    case DType::i64:
      return pick(int64_t());
    case DType::u64:
      return pick(uint64_t());
    case DType::f16:
      return pick(F16());
    case DType::bf16:
      return pick(Bf16());
    case DType::f32:
      return pick(float());
    case DType::f64:
      return pick(double());
  }
  return nullptr;
}

template <bool kLoad>
Loop find_loop(DType stored, DType reg) {
  Loop loop = nullptr;
  switch (reg) {
    case DType::f32:
      loop = loop_of<float, kLoad>(stored);
      break;
    case DType::f64:
      loop = loop_of<double, kLoad>(stored);
      break;
    case DType::i32:
      loop = loop_of<int32_t, kLoad>(stored);
      break;
    case DType::i64:
      loop = loop_of<int64_t, kLoad>(stored);
      break;
    default:
      break;
  }
  if (!loop)
    throw Error(ErrorCode::kInvalidArgument,
                std::string("converting ") + (kLoad ? "stored " : "registers to stored ") +
                    dtype_name(stored) + ": registers are f32, f64, i32 or i64, not " +
                    dtype_name(reg));
  return loop;
}

}  // namespace

void load(DType stored, const void* from, ptrdiff_t stride, DType reg, void* to, size_t n) {
  find_loop<true>(stored, reg)(from, stride, to, n);
}

void store(DType reg, const void* from, DType stored, void* to, size_t n) {
  find_loop<false>(stored, reg)(from, 1, to, n);
}

void convert_registers(DType from_type, const void* from, DType to_type, void* to, size_t n) {
  find_loop<true>(from_type, to_type)(from, 1, to, n);
}

}  // namespace prism::cpu
