// Quantised products with AVX-512 VNNI: 512-bit vectors for panels and for the single rows of types
// in quantised_half_lanes.inc, 256-bit vectors for those of the others. On Zen 4 a block of q4_k
// takes 21 cycles with 256 bits and 26 with 512.
#include "cpu/processor_features.h"
#include "cpu/products/quantised_kernels.h"

#if defined(__AVX512VNNI__) && defined(__AVX512VL__) && defined(__FMA__) && defined(__F16C__)

// GCC takes the undefined operands of its own intrinsics for mistakes.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif

#include "base/types/block_formats.h"
#include "base/types/unpacked_block.h"

namespace prism::cpu {
namespace {

#include "cpu/products/quantised_vectors.inc"

#include "cpu/products/quantised_x86.inc"

PRISM_INLINE __m256i add_products(__m256i total, __m256i without_sign, __m256i with_sign) {
  return _mm256_dpbusd_epi32(total, without_sign, with_sign);
}
PRISM_INLINE __m256i add_wide_products(__m256i total, __m256i a, __m256i b) {
  return _mm256_dpwssd_epi32(total, a, b);
}

#include "cpu/products/quantised_vnni.inc"

typedef int32_t VectorI __attribute__((vector_size(64)));
typedef float VectorF __attribute__((vector_size(64)));
// 12 integer sums and 12 float sums, two vectors of weights, one of activations, two of scales: 29
// of 32 registers.
constexpr int kLanes = 16, kVectors = 2, kTileRows = 6, kFlip = 128;

template <bool>
PRISM_INLINE VectorI tile_dot(VectorI total, VectorI w, VectorI x) {
  return (VectorI)_mm512_dpbusd_epi32((__m512i)total, (__m512i)x, (__m512i)w);
}

#include "cpu/products/quantised_types.inc"

#include "cpu/products/quantised_rows.inc"

#include "cpu/products/quantised_panels.inc"

#include "cpu/products/quantised_lanes.inc"

PRISM_INLINE i8x32 negate_where(i8x32 v, uint32_t elements) {
  return (i8x32)_mm256_mask_sub_epi8((__m256i)v, elements, _mm256_setzero_si256(), (__m256i)v);
}

#include "cpu/products/quantised_expand.inc"

#include "cpu/products/quantised_half_lanes.inc"

#include "cpu/products/quantised_codebooks.inc"

constexpr AllLanesTable kLanesOf;

constexpr QuantisedKernels kKernels = {"AVX-512 VNNI",
                                       has_avx512_vnni,
                                       kPanelRows,
                                       kTileRows,
                                       kFlip,
                                       PRISM_QUANTISED_LIST(rows),
                                       PRISM_QUANTISED_LIST(panel),
                                       expand,
                                       rows_expanding,
                                       kLanesOf.of};

}  // namespace

const QuantisedKernels* avx512_vnni_quantised_kernels() { return &kKernels; }

}  // namespace prism::cpu

#else

namespace prism::cpu {
const QuantisedKernels* avx512_vnni_quantised_kernels() { return nullptr; }
}  // namespace prism::cpu

#endif
