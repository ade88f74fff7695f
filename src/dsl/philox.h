// Philox 4x32-10 (Salmon et al., 2011): random numbers from a counter and a key, identical on every
// device.
#pragma once

#include <array>
#include <cstdint>

#include "prism/kernel.h"

namespace prism::dsl {

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultiply0 = 0xD2511F53u, kPhiloxMultiply1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9u, kPhiloxWeyl1 = 0xBB67AE85u;

// The four words of block `counter`, as a vector.
Value philox_words(Value counter, Value key_low, Value key_high);
// The same on the host.
std::array<uint32_t, 4> philox_block(uint32_t counter, uint32_t key_low, uint32_t key_high);

}  // namespace prism::dsl
