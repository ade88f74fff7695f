// Capabilities of AMD chips, and the kernel driver's list of them.
#include "backends/hip/hip_cards.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "print/hip_fragments.h"

namespace prism::hip {
namespace {

bool is_one_of(uint32_t number, std::initializer_list<uint32_t> numbers) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Whether the chip has sdot4 and udot4: Vega 20, CDNA, later RDNA 1 chips, RDNA 2 and newer.
bool has_dot4(uint32_t number) {
  return is_one_of(number, {0x906, 0x908, 0x90a, 0x940, 0x941, 0x942, 0x950, 0x1011, 0x1012}) ||
         number >= 0x1030;
}

// The chip of the same family whose code runs on this one under HSA_OVERRIDE_GFX_VERSION; empty if
// there is none.
std::string sibling(uint32_t number) {
  if (number > 0x1030 && number < 0x1040) return "10.3.0";
  if (number > 0x1010 && number < 0x1020) return "10.1.0";
  if (number > 0x1100 && number < 0x1110) return "11.0.0";
  if (is_one_of(number, {0x902, 0x909, 0x90c})) return "9.0.0";
  return "";
}

}  // namespace

uint32_t gfx_number(const std::string& gfx) {
  if (gfx.rfind("gfx", 0) != 0) return 0;
  return static_cast<uint32_t>(std::strtoul(gfx.c_str() + 3, nullptr, 16));
}

void add_abilities(uint32_t number, uint32_t wave, ir::Capabilities* can) {
  can->dialect = "hip";
  can->dialect_level = number;
  can->storage_bf16 = true;
  can->math_f16 = true;  // since gfx803
  can->math_i64 = true;
  can->math_f64 = true;
  can->float_atomics = can->device_fence = true;
  can->dot4 = has_dot4(number);
  can->subgroup_size = wave;
  can->subgroup_sizes = {wave};
  // Lane indices are relative to a subgroup, which may be half a wave.
  if (wave == 64) can->subgroup_sizes = {32, 64};
  if (hip_matrix(number) != HipMatrix::none) {
    can->fragments = {{DType::f16, DType::f32, 16, 16, 16},
                      {DType::bf16, DType::f32, 16, 16, 16},
                      {DType::i8, DType::i32, 16, 16, 32}};
    can->fragment_layout = true;
  }
  can->max_buffers = 64;                // 8-byte arguments, in at most 4 KiB
  can->max_binding_bytes = 1ull << 48;  // larger than any card's memory, so nothing is split
}

std::vector<std::string> kernel_chips() {
  namespace fs = std::filesystem;
  const char* named = std::getenv("PRISM_KFD_TOPOLOGY");
  const fs::path nodes = named && *named ? named : "/sys/class/kfd/kfd/topology/nodes";
  std::vector<std::string> chips;
  std::error_code failed;
  for (const auto& node : fs::directory_iterator(nodes, failed)) {
    std::ifstream properties(node.path() / "properties");
    std::string name;
    for (unsigned long long value = 0; properties >> name >> value;)
      if (name == "gfx_target_version" && value > 0)  // 90010 is 9.0.10, gfx90a; CPUs have 0
        chips.push_back(
            fmt::format("gfx{}{:x}{:x}", value / 10000, value / 100 % 100, value % 100));
  }
  std::sort(chips.begin(), chips.end());
  return chips;
}

std::string other_ways(const std::string& gfx) {
  const uint32_t number = gfx_number(gfx);
  std::string ways =
      "the card is used through Vulkan where its driver is there (Debian: apt install "
      "mesa-vulkan-drivers)";
  if (const std::string version = sibling(number); !version.empty())
    ways +=
        fmt::format("; or set HSA_OVERRIDE_GFX_VERSION={}, whose code runs on {}", version, gfx);
  if (number < 0x900)
    ways += "; or install ROCm 5.7 or older and set ROC_ENABLE_PRE_VEGA=1";
  else if (number < 0x908)
    ways += "; or install an older ROCm (5.7)";
  else
    ways += "; or install a newer ROCm";
  return ways + " (docs/old-amd-cards.md)";
}

gpu::Absence no_known_card(const std::string& hip_version) {
  const std::vector<std::string> chips = kernel_chips();
  if (chips.empty())
    return {
        "ROCm's HIP runtime is installed but sees no AMD GPU",
        "see what rocminfo says; ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES may hide the card"};
  return {fmt::format("ROCm's HIP runtime {} does not know the card in this machine ({})",
                      hip_version, fmt::join(chips, ", ")),
          other_ways(chips.front())};
}

}  // namespace prism::hip
