// The list of instruction sets and the selection among them.
#include "cpu/products/quantised_kernels.h"

namespace prism::cpu {

const std::vector<const QuantisedKernels*>& all_quantised_kernels() {
  static const std::vector<const QuantisedKernels*> list = [] {
    std::vector<const QuantisedKernels*> found;
    for (const QuantisedKernels* kernels :
         {avx512_vnni_quantised_kernels(), avx_vnni_quantised_kernels(), avx2_quantised_kernels(),
          neon_i8mm_quantised_kernels(), neon_dot_quantised_kernels(), scalar_quantised_kernels()})
      if (kernels) found.push_back(kernels);
    return found;
  }();
  return list;
}

const QuantisedKernels& best_quantised_kernels() {
  static const QuantisedKernels* const best = [] {
    const QuantisedKernels* chosen = nullptr;
    for (const QuantisedKernels* kernels : all_quantised_kernels())
      if (!chosen && kernels->supported()) chosen = kernels;
    return chosen;
  }();
  return *best;
}

}  // namespace prism::cpu
