// The register layouts of 16 x 16 fragments for AMD's matrix instructions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "print/fragment_printer.h"
#include "print/prelude.h"

namespace prism {

enum class HipMatrix { none, mfma, wmma_gfx11, wmma_gfx12 };

// level: the gfx number, 0x90a.
HipMatrix hip_matrix(uint32_t level);
FragmentRegisters hip_fragment_registers(uint32_t level);
// Prelude items for fragments; requires those of f16, bf16, vectors and shuffles before it.
std::vector<PreludeItem> hip_fragment_prelude(uint32_t level, const std::string& qualifier);

}  // namespace prism
