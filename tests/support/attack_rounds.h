// The number of rounds of an attack: short by default, long with `make attack`.
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

}  // namespace prism::test
