// AMD's chips by their gfx number: what each can do, and what to tell the owner of one that ROCm
// does not know.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/gpu_runtime/gpu_api.h"
#include "prism/capabilities.h"

namespace prism::hip {

// The number of "gfx90a" as hexadecimal digits: 0x90a; 0 for what is no such name.
uint32_t gfx_number(const std::string& gfx);

// What a kernel may use beyond the plain language: subgroups, dot products, fragments.
void add_abilities(uint32_t number, uint32_t wave, ir::Capabilities* can);

// The chips the kernel driver shows, whatever ROCm thinks of them: "gfx803", "gfx90a".
std::vector<std::string> kernel_chips();

// For a chip that this ROCm's runtime or compiler does not serve: what works instead.
std::string other_ways(const std::string& gfx);

// No device, though the kernel driver is there: names the chips it shows.
gpu::Absence no_known_card(const std::string& hip_version);

}  // namespace prism::hip
