// AMD chips by gfx number: their capabilities, and advice for chips that ROCm does not support.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/gpu_runtime/gpu_api.h"
#include "prism/capabilities.h"

namespace prism::hip {

// The hexadecimal number of a gfx name: 0x90a for "gfx90a"; 0 if it is no such name.
uint32_t gfx_number(const std::string& gfx);

// Adds the chip's optional features: subgroups, dot products, fragments.
void add_abilities(uint32_t number, uint32_t wave, ir::Capabilities* can);

// The chips that the kernel driver lists, whether or not ROCm supports them: "gfx803", "gfx90a".
std::vector<std::string> kernel_chips();

// Alternatives for a chip that this ROCm's runtime or compiler does not support.
std::string other_ways(const std::string& gfx);

// The reason for finding no device although the kernel driver is loaded; names the chips that it
// lists.
gpu::Absence no_known_card(const std::string& hip_version);

}  // namespace prism::hip
