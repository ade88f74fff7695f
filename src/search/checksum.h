// A fast 64-bit checksum for large sections of a file. Finds damage; no protection from an
// adversary.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace prism::search {

inline uint64_t checksum(std::span<const std::byte> bytes) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;  // 2^64 divided by the golden ratio
  const auto mix = [](uint64_t state, uint64_t word) {
    state = (state ^ word) * kOdd;
    return state ^ (state >> 29);
  };
  const auto word_at = [&](size_t at, size_t count) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, count);
    return word;
  };
  // Four chains, so that multiplications overlap.
  uint64_t chains[4] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32)
    for (size_t i = 0; i < 4; ++i) chains[i] = mix(chains[i], word_at(at + 8 * i, 8));
  for (; at < bytes.size(); at += 8)
    chains[0] = mix(chains[0], word_at(at, std::min<size_t>(8, bytes.size() - at)));
  uint64_t sum = bytes.size();
  for (const uint64_t chain : chains) sum = mix(sum, chain);
  return sum;
}

}  // namespace prism::search
