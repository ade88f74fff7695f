// SHA-256 as FIPS 180-4 defines it.
#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "prism/error.h"

namespace prism {

namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::block(const std::byte* bytes) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = 0;
    for (size_t j = 0; j < 4; ++j) w[i] = w[i] << 8 | static_cast<uint32_t>(bytes[4 * i + j]);
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                         ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += sum[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  size_t held = bytes_ % 64;
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (held == 0 && bytes.size() >= 64) {
      block(bytes.data());
      bytes = bytes.subspan(64);
      continue;
    }
    const size_t taken = std::min(bytes.size(), 64 - held);
    std::memcpy(rest_.data() + held, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    held = (held + taken) % 64;
    if (held == 0) block(rest_.data());
  }
}

std::string Sha256::finish() {
  const uint64_t bits = bytes_ * 8;
  std::array<std::byte, 72> end{std::byte{0x80}};
  const size_t zeros = (64 + 56 - bytes_ % 64 - 1) % 64;
  for (size_t i = 0; i < 8; ++i) end[1 + zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(std::span(end).first(1 + zeros + 8));
  std::string text;
  for (const uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

std::string sha256_of_file(const std::string& path,
                           const std::function<void(uint64_t bytes)>& progress) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rb"), [](std::FILE* f) { return std::fclose(f); });
  const auto fail = [&] {
    throw Error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                path + ": cannot be read: " + std::strerror(errno));
  };
  if (!file) fail();
  Sha256 hash;
  std::vector<std::byte> piece(1 << 20);
  uint64_t done = 0;
  while (const size_t bytes = std::fread(piece.data(), 1, piece.size(), file.get())) {
    hash.update(std::span(piece).first(bytes));
    if (progress) progress(done += bytes);
  }
  if (std::ferror(file.get())) fail();
  return hash.finish();
}

}  // namespace prism
