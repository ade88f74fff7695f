// SHA-256, for the checksums of downloaded files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace prism {

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  std::string finish();  // 64 hexadecimal digits; call once, at the end

 private:
  void block(const std::byte* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};
  uint64_t bytes_ = 0;
};

// Hashes a whole file; progress receives the bytes read so far. Throws kNotFound and kIo.
std::string sha256_of_file(const std::string& path,
                           const std::function<void(uint64_t bytes)>& progress = {});

}  // namespace prism
