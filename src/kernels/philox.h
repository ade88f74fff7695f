// Philox 4x32-10 (Salmon et al., 2011): random numbers from a counter and a key, the same on every
// device.
#pragma once

#include <array>
#include <cstdint>

#include "dsl/dsl.h"

namespace prism::kernels {

// The four words of block `counter`, as a vector.
dsl::Value philox_words(dsl::Value counter, dsl::Value key_low, dsl::Value key_high);
// The same on the host.
std::array<uint32_t, 4> philox_block(uint32_t counter, uint32_t key_low, uint32_t key_high);

}  // namespace prism::kernels
