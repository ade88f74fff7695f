// The rounds of an attack: few by default, many with `make attack`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace prism::test {

// `brief` rounds, times PRISM_ATTACK where that is set.
inline int64_t attack_rounds(int64_t brief) {
  const char* factor = std::getenv("PRISM_ATTACK");
  return brief * std::max<int64_t>(factor ? std::atoll(factor) : 1, 1);
}

// PRISM_ATTACK_START, or 0: the number of the first round, or what is added to the seed of an
// attack whose rounds follow from one another. A long attack runs in parts with different starts.
inline int64_t attack_start() {
  const char* start = std::getenv("PRISM_ATTACK_START");
  return start ? std::atoll(start) : 0;
}

}  // namespace prism::test
