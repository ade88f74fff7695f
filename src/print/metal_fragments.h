// The register layout of 16 x 16 fragments in simdgroup matrices.
#pragma once

#include <string>
#include <vector>

#include "print/fragment_printer.h"
#include "print/prelude.h"

namespace prism {

inline constexpr FragmentRegisters kMetalFragments{8, 4, true, true};
// Prelude items for fragments; requires those of f16, bf16, shuffles and combinations before it.
std::vector<PreludeItem> metal_fragment_prelude(const std::string& qualifier);

}  // namespace prism
