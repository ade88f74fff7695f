// Quantised products with AVX2: pairs of 8-bit products are summed in 16 bits without overflow (128
// * 127 * 2 < 2^15).
#include "cpu/processor_features.h"
#include "cpu/products/quantised_kernels.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

#include "base/types/block_formats.h"
#include "base/types/unpacked_block.h"

namespace prism::cpu {
namespace {

#include "cpu/products/quantised_vectors.inc"

#include "cpu/products/quantised_x86.inc"

// Sums of four products.
template <bool kSigned>
PRISM_INLINE i32x8 dot(i8x32 w, i8x32 x) {
  const __m256i pairs = _mm256_maddubs_epi16(magnitude<kSigned>(w), signed_by<kSigned>(x, w));
  return (i32x8)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// 16-bit scales, duplicated in each lane, for dot_scaled.
PRISM_INLINE i32x8 scale_operand(i32x8 scales) { return (scales & 0xFFFF) | (scales << 16); }

template <bool kSigned>
PRISM_INLINE i32x8 dot_scaled(i32x8 total, i8x32 w, i8x32 x, i32x8 scale) {
  const __m256i pairs = _mm256_maddubs_epi16(magnitude<kSigned>(w), signed_by<kSigned>(x, w));
  return total + (i32x8)_mm256_madd_epi16(pairs, (__m256i)scale);
}

typedef i32x8 VectorI;
typedef f32x8 VectorF;
constexpr int kLanes = 8, kVectors = 2, kTileRows = 3, kFlip = 0;

template <bool kSigned>
PRISM_INLINE VectorI tile_dot(VectorI total, VectorI w, VectorI x) {
  return total + dot<kSigned>((i8x32)w, (i8x32)x);
}

#include "cpu/products/quantised_types.inc"

#include "cpu/products/quantised_rows.inc"

#include "cpu/products/quantised_panels.inc"

PRISM_INLINE i8x32 negate_where(i8x32 v, uint32_t elements) {
  return (i8x32)_mm256_sign_epi8((__m256i)v, (__m256i)(spread_bits(elements) | 1));
}

#include "cpu/products/quantised_expand.inc"

constexpr QuantisedKernels kKernels = {"AVX2",
                                       has_avx2,
                                       kPanelRows,
                                       kTileRows,
                                       kFlip,
                                       PRISM_QUANTISED_LIST(rows),
                                       PRISM_QUANTISED_LIST(panel),
                                       expand,
                                       rows_expanding};

}  // namespace

const QuantisedKernels* avx2_quantised_kernels() { return &kKernels; }

}  // namespace prism::cpu

#else

namespace prism::cpu {
const QuantisedKernels* avx2_quantised_kernels() { return nullptr; }
}  // namespace prism::cpu

#endif
