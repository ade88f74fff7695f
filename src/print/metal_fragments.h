// How simdgroup matrices hold 16 x 16 fragments in the registers of a simdgroup.
#pragma once

#include <string>
#include <vector>

#include "print/fragment_printer.h"
#include "print/prelude.h"

namespace prism {

inline constexpr FragmentRegisters kMetalFragments{8, 4, true, true};
// Prelude items for fragments; needs those of f16, bf16, shuffles and combinations before it.
std::vector<PreludeItem> metal_fragment_prelude(const std::string& qualifier);

}  // namespace prism
