// Quantised products with AVX-VNNI: one 256-bit instruction adds four 8-bit products to 32 bits.
#include "cpu/processor_features.h"
#include "cpu/products/quantised_kernels.h"

#if defined(__AVXVNNI__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

#include "base/types/block_formats.h"
#include "base/types/unpacked_block.h"

namespace prism::cpu {
namespace {

#include "cpu/products/quantised_vectors.inc"

#include "cpu/products/quantised_x86.inc"

PRISM_INLINE __m256i add_products(__m256i total, __m256i without_sign, __m256i with_sign) {
  return _mm256_dpbusd_avx_epi32(total, without_sign, with_sign);
}
PRISM_INLINE __m256i add_wide_products(__m256i total, __m256i a, __m256i b) {
  return _mm256_dpwssd_avx_epi32(total, a, b);
}

#include "cpu/products/quantised_vnni.inc"

typedef i32x8 VectorI;
typedef f32x8 VectorF;
constexpr int kLanes = 8, kVectors = 2, kTileRows = 3, kFlip = 128;

template <bool>
PRISM_INLINE VectorI tile_dot(VectorI total, VectorI w, VectorI x) {
  return (VectorI)_mm256_dpbusd_avx_epi32((__m256i)total, (__m256i)x, (__m256i)w);
}

#include "cpu/products/quantised_types.inc"

#include "cpu/products/quantised_rows.inc"

#include "cpu/products/quantised_panels.inc"

#include "cpu/products/quantised_lanes.inc"

PRISM_INLINE i8x32 negate_where(i8x32 v, uint32_t elements) {
  return (i8x32)_mm256_sign_epi8((__m256i)v, (__m256i)(spread_bits(elements) | 1));
}

#include "cpu/products/quantised_expand.inc"

constexpr LanesTable kLanesOf;

constexpr QuantisedKernels kKernels = {"AVX-VNNI",
                                       has_avx_vnni,
                                       kPanelRows,
                                       kTileRows,
                                       kFlip,
                                       PRISM_QUANTISED_LIST(rows),
                                       PRISM_QUANTISED_LIST(panel),
                                       expand,
                                       rows_expanding,
                                       kLanesOf.of};

}  // namespace

const QuantisedKernels* avx_vnni_quantised_kernels() { return &kKernels; }

}  // namespace prism::cpu

#else

namespace prism::cpu {
const QuantisedKernels* avx_vnni_quantised_kernels() { return nullptr; }
}  // namespace prism::cpu

#endif
