// Vectorised conversion of arrays between 16-bit floats and f32.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include "cpu/elementwise_parts.h"
#include "prism/dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/half.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors are stored as 16-bit integers; prism/dtype.h handles the remainder of an array.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#define PRISM_VECTOR_HALVES 1
using D = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<D>;
using DHalf = hn::Rebind<uint16_t, D>;
#else
#define PRISM_VECTOR_HALVES 0
#endif
// Native f16 instructions: F16C comes with AVX2; NEON has its own.
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON
#define PRISM_NATIVE_F16 1
#else
#define PRISM_NATIVE_F16 0
#endif

void F32FromF16(const uint16_t* from, float* to, size_t n) {
  size_t i = 0;
#if PRISM_VECTOR_HALVES
  const D d;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
#if PRISM_NATIVE_F16
    const hn::Rebind<hwy::float16_t, D> df16;
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(df16, hn::LoadU(DHalf(), from + i))), d, to + i);
#else
    const DU du;
    const auto bits = hn::PromoteTo(du, hn::LoadU(DHalf(), from + i));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
    // With exponent and mantissa in f32 position, the value is scaled by 2^-112. The multiplication
    // is exact and also handles subnormals.
    const auto value = hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f));
    const auto special = hn::Gt(hn::BitCast(hn::RebindToSigned<D>(), magnitude),
                                hn::Set(hn::RebindToSigned<D>(), 0x0f7fffff));
    const auto infinite = hn::Or(magnitude, hn::Set(du, 0x7f800000u));
    const auto chosen =
        hn::IfThenElse(hn::RebindMask(du, special), infinite, hn::BitCast(du, value));
    hn::StoreU(hn::BitCast(d, hn::Or(chosen, sign)), d, to + i);
#endif
  }
#endif
  for (; i < n; ++i) to[i] = prism::f32_from_f16(from[i]);
}

void F16FromF32(const float* from, uint16_t* to, size_t n) {
  size_t i = 0;
#if PRISM_VECTOR_HALVES
  const D d;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    auto x = hn::LoadU(d, from + i);
    const auto quiet = hn::BitCast(d, hn::Set(DU(), 0x7fc00000u));
    x = hn::IfThenElse(hn::IsNaN(x), hn::CopySign(quiet, x), x);
#if PRISM_NATIVE_F16
    const hn::Rebind<hwy::float16_t, D> df16;
    hn::StoreU(hn::BitCast(DHalf(), hn::DemoteTo(df16, x)), DHalf(), to + i);
#else
    // As in prism/dtype.h.
    const DU du;
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(du, x);
    const auto sign = hn::ShiftRight<16>(hn::And(bits, hn::Set(du, 0x80000000u)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
    const auto compare = hn::BitCast(di, magnitude);
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
    const auto normal =
        hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(du, 0x38000000u - 0xfffu)), odd));
    const auto aligned = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f));
    const auto subnormal = hn::Sub(hn::BitCast(du, aligned), hn::Set(du, 0x3f000000u));
    auto half = hn::IfThenElse(hn::RebindMask(du, hn::Lt(compare, hn::Set(di, 0x38800000))),
                               subnormal, normal);
    half = hn::IfThenElse(hn::RebindMask(du, hn::Gt(compare, hn::Set(di, 0x477fffff))),
                          hn::Set(du, 0x7c00u), half);
    half = hn::IfThenElse(hn::RebindMask(du, hn::Gt(compare, hn::Set(di, 0x7f800000))),
                          hn::Set(du, 0x7e00u), half);
    // The signed conversion saturates at 32767, so extend the sign first.
    const auto extended =
        hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(di, hn::Or(half, sign))));
    const hn::Rebind<int16_t, D> d16;
    hn::StoreU(hn::BitCast(DHalf(), hn::DemoteTo(d16, extended)), DHalf(), to + i);
#endif
  }
#endif
  for (; i < n; ++i) to[i] = prism::f16_from_f32(from[i]);
}

void F32FromBf16(const uint16_t* from, float* to, size_t n) {
  size_t i = 0;
#if PRISM_VECTOR_HALVES
  const D d;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto bits = hn::PromoteTo(DU(), hn::LoadU(DHalf(), from + i));
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(bits)), d, to + i);
  }
#endif
  for (; i < n; ++i) to[i] = prism::f32_from_bf16(from[i]);
}

void Bf16FromF32(const float* from, uint16_t* to, size_t n) {
  size_t i = 0;
#if PRISM_VECTOR_HALVES
  const D d;
  const DU du;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, from + i);
    const auto bits = hn::BitCast(du, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fffu)), odd);
    const auto quiet = hn::Or(bits, hn::Set(du, 0x400000u));
    const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
    // The high half with its sign extended, because the narrowing conversion saturates.
    const hn::RebindToSigned<D> di;
    const hn::Rebind<int16_t, D> d16;
    const auto high = hn::ShiftRight<16>(hn::BitCast(di, chosen));
    hn::StoreU(hn::BitCast(DHalf(), hn::DemoteTo(d16, high)), DHalf(), to + i);
  }
#endif
  for (; i < n; ++i) to[i] = prism::bf16_from_f32(from[i]);
}

#undef PRISM_VECTOR_HALVES
#undef PRISM_NATIVE_F16

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(F32FromF16);
HWY_EXPORT(F16FromF32);
HWY_EXPORT(F32FromBf16);
HWY_EXPORT(Bf16FromF32);

void f32_from_f16(const uint16_t* from, float* to, size_t n) {
  HWY_DYNAMIC_DISPATCH(F32FromF16)(from, to, n);
}
void f16_from_f32(const float* from, uint16_t* to, size_t n) {
  HWY_DYNAMIC_DISPATCH(F16FromF32)(from, to, n);
}
void f32_from_bf16(const uint16_t* from, float* to, size_t n) {
  HWY_DYNAMIC_DISPATCH(F32FromBf16)(from, to, n);
}
void bf16_from_f32(const float* from, uint16_t* to, size_t n) {
  HWY_DYNAMIC_DISPATCH(Bf16FromF32)(from, to, n);
}

}  // namespace prism::cpu
#endif
