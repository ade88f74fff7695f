// Quantised products with NEON's dot-product instructions.
#include "cpu/processor_features.h"
#include "cpu/products/quantised_kernels.h"

#if defined(__ARM_NEON) && defined(__ARM_FEATURE_DOTPROD)

#include <arm_neon.h>

#include "base/types/block_formats.h"

namespace prism::cpu {
namespace {

#include "cpu/products/quantised_vectors.inc"

#include "cpu/products/quantised_neon.inc"

typedef int32_t VectorI __attribute__((vector_size(16)));
typedef float VectorF __attribute__((vector_size(16)));
// 12 integer sums and 12 float sums, two vectors of weights, one of activations, two of scales: 29
// of 32 registers.
constexpr int kLanes = 4, kVectors = 2, kTileRows = 6, kFlip = 0;

template <bool>
PRISM_INLINE VectorI tile_dot(VectorI total, VectorI w, VectorI x) {
  return (VectorI)vdotq_s32((int32x4_t)total, (int8x16_t)w, (int8x16_t)x);
}

#include "cpu/products/quantised_types.inc"

#include "cpu/products/quantised_rows.inc"

#include "cpu/products/quantised_panels.inc"

constexpr QuantisedKernels kKernels = {"NEON dot",
                                       has_neon_dot,
                                       kPanelRows,
                                       kTileRows,
                                       kFlip,
                                       PRISM_QUANTISED_LIST(rows),
                                       PRISM_QUANTISED_LIST(panel)};

}  // namespace

const QuantisedKernels* neon_dot_quantised_kernels() { return &kKernels; }

}  // namespace prism::cpu

#else

namespace prism::cpu {
const QuantisedKernels* neon_dot_quantised_kernels() { return nullptr; }
}  // namespace prism::cpu

#endif
