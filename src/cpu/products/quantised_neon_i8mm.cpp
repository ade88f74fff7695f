// Quantised products with NEON's matrix instructions, each 2 x 8 times 8 x 2. Single rows use the
// dot-product instructions.
#include "cpu/processor_features.h"
#include "cpu/products/quantised_kernels.h"

#if defined(__ARM_NEON) && defined(__ARM_FEATURE_DOTPROD) && defined(__ARM_FEATURE_MATMUL_INT8)

#include <arm_neon.h>

#include "base/types/block_formats.h"

namespace prism::cpu {
namespace {

#include "cpu/products/quantised_vectors.inc"

#include "cpu/products/quantised_neon.inc"

typedef int32_t VectorI __attribute__((vector_size(16)));
typedef float VectorF __attribute__((vector_size(16)));
constexpr int kLanes = 4, kVectors = 2, kTileRows = 6, kFlip = 0;

#define PRISM_PAIRED_WORDS

// Interleaves two neighbouring words (eight elements) of all rows into pairs: rows 0, 1, 4, 5, ...
// in the first half, rows 2, 3, 6, 7, ... in the second.
template <int kRowsOfPanel>
PRISM_INLINE void pair_words(int32_t* words) {
  for (int v = 0; v < kRowsOfPanel; v += 4) {
    const int32x4_t first = vld1q_s32(words + v), second = vld1q_s32(words + kRowsOfPanel + v);
    vst1q_s32(words + v, vzip1q_s32(first, second));
    vst1q_s32(words + kRowsOfPanel + v, vzip2q_s32(first, second));
  }
}

// Adds the products of one group of elements.
template <class Type, int kRows>
PRISM_INLINE void add_group(const int32_t* words, const uint8_t* x,
                            VectorI (&total)[kRows][kVectors]) {
  constexpr int kPairs = (kRows + 1) / 2, kRowsOfPanel = kLanes * kVectors;
  int32x4_t sums[kPairs][kVectors][2];
#pragma GCC unroll 4
  for (int a = 0; a < kPairs; ++a)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[a][v][0] = sums[a][v][1] = vdupq_n_s32(0);
#pragma GCC unroll 4
  for (int word = 0; word < Type::kGroup / 4; word += 2) {
    int8x16_t w[kVectors][2];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i)
        w[v][i] = vreinterpretq_s8_s32(vld1q_s32(words + (word + i) * kRowsOfPanel + v * kLanes));
#pragma GCC unroll 4
    for (int a = 0; a < kPairs; ++a) {
      // The last of an odd number of rows is paired with itself; the duplicate result is dropped.
      const int first = 2 * a, second = 2 * a + 1 < kRows ? 2 * a + 1 : 2 * a;
      const int32x4_t values = {
          load<int32_t>(x + 4 * (word * kRows + first)),
          load<int32_t>(x + 4 * ((word + 1) * kRows + first)),
          load<int32_t>(x + 4 * (word * kRows + second)),
          load<int32_t>(x + 4 * ((word + 1) * kRows + second)),
      };
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 2
        for (int i = 0; i < 2; ++i)
          sums[a][v][i] = vmmlaq_s32(sums[a][v][i], w[v][i], vreinterpretq_s8_s32(values));
    }
  }
#pragma GCC unroll 4
  for (int a = 0; a < kPairs; ++a)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      total[2 * a][v] += (VectorI)vuzp1q_s32(sums[a][v][0], sums[a][v][1]);
      if (2 * a + 1 < kRows)
        total[2 * a + 1][v] += (VectorI)vuzp2q_s32(sums[a][v][0], sums[a][v][1]);
    }
}

#include "cpu/products/quantised_types.inc"

#include "cpu/products/quantised_rows.inc"

#include "cpu/products/quantised_panels.inc"

constexpr QuantisedKernels kKernels = {"NEON i8mm",
                                       has_neon_i8mm,
                                       kPanelRows,
                                       kTileRows,
                                       kFlip,
                                       PRISM_QUANTISED_LIST(rows),
                                       PRISM_QUANTISED_LIST(panel)};

}  // namespace

const QuantisedKernels* neon_i8mm_quantised_kernels() { return &kKernels; }

}  // namespace prism::cpu

#else

namespace prism::cpu {
const QuantisedKernels* neon_i8mm_quantised_kernels() { return nullptr; }
}  // namespace prism::cpu

#endif
