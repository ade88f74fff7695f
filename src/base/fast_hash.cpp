// Implements the hash: eight independent lanes, so that a core computes several at once.
#include "base/fast_hash.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism {
namespace {

constexpr uint64_t kFactor = 0xff51afd7ed558ccd;  // odd, so multiplication loses nothing

// Murmur3's finish: every bit of the input changes half of the bits.
uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= kFactor;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

}  // namespace

void FastHash::stripe(const std::byte* bytes) {
  for (size_t i = 0; i < kLanes; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i * sizeof(word), sizeof(word));
    // Both steps can be undone, so another word always gives another lane.
    const uint64_t lane = (lanes_[i] ^ word) * kFactor;
    lanes_[i] = lane ^ (lane >> 29);
  }
}

void FastHash::update(std::span<const std::byte> bytes) {
  const size_t held = bytes_ % kStripe;
  bytes_ += bytes.size();
  if (held > 0) {
    const size_t count = std::min(bytes.size(), kStripe - held);
    std::copy_n(bytes.begin(), count, rest_.begin() + static_cast<ptrdiff_t>(held));
    bytes = bytes.subspan(count);
    if (held + count < kStripe) return;
    stripe(rest_.data());
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) stripe(bytes.data());
  std::ranges::copy(bytes, rest_.begin());
}

std::string FastHash::finish() {
  if (const size_t held = bytes_ % kStripe; held > 0) {
    std::fill(rest_.begin() + static_cast<ptrdiff_t>(held), rest_.end(), std::byte{0});
    stripe(rest_.data());
  }
  uint64_t a = mix(bytes_), b = mix(~bytes_);
  for (const uint64_t lane : lanes_) {
    a = mix(a ^ lane);
    b = mix(b + lane);
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

std::string fast_hash(std::span<const std::byte> bytes) {
  FastHash hash;
  hash.update(bytes);
  return hash.finish();
}

std::string fast_hash_of_files(std::span<const std::string> paths) {
  FastHash hash;
  std::vector<char> some(size_t{1} << 20);
  for (const std::string& path : paths) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw Error(ErrorCode::kNotFound, path + ": cannot be opened to compute its checksum");
    while (in) {
      in.read(some.data(), static_cast<std::streamsize>(some.size()));
      hash.update(std::as_bytes(std::span(some).first(static_cast<size_t>(in.gcount()))));
    }
    if (in.bad()) throw Error(ErrorCode::kIo, path + ": cannot be read to compute its checksum");
  }
  return hash.finish();
}

}  // namespace prism
