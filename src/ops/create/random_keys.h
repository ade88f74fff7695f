// The keys of draws that name none: their state, for layers that draw and for checkpoints.
#pragma once

#include <cstdint>

namespace prism {

uint64_t next_random_key();
uint64_t random_key_state();  // seed() with this value continues the sequence of keys

}  // namespace prism
