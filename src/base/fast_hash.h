// A fast 128-bit hash that finds damage and tells files apart. It does not resist an attacker; use
// Sha256 for that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace prism {

class FastHash {
 public:
  void update(std::span<const std::byte> bytes);
  std::string finish();  // 32 hexadecimal digits; call once, at the end

 private:
  static constexpr size_t kLanes = 8, kStripe = kLanes * sizeof(uint64_t);
  void stripe(const std::byte* bytes);

  std::array<uint64_t, kLanes> lanes_ = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                         0x85ebca77c2b2ae63, 0x27d4eb2f165667c5, 0xd6e8feb86659fd93,
                                         0xa0761d6478bd642f, 0xe7037ed1a0b428db};
  std::array<std::byte, kStripe> rest_{};
  uint64_t bytes_ = 0;
};

std::string fast_hash(std::span<const std::byte> bytes);
// Hashes whole files, one after the other. Throws kNotFound and kIo.
std::string fast_hash_of_files(std::span<const std::string> paths);

}  // namespace prism
