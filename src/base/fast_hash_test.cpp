// Tests that the fast hash depends on every byte, and not on how the bytes arrive.
#include "base/fast_hash.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/system/output_file.h"
#include "prism/error.h"
#include "support/run_program.h"

namespace prism {
namespace {

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 64);
  return bytes;
}

TEST(FastHash, DependsOnEveryByteAndTheLength) {
  std::set<std::string> seen;
  std::vector<std::byte> bytes = some_bytes(150);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{1};
    EXPECT_TRUE(seen.insert(fast_hash(bytes)).second) << i;
    bytes[i] ^= std::byte{1};
    EXPECT_TRUE(seen.insert(fast_hash(std::span(bytes).first(i))).second) << i;
  }
  // Zeros at the end count.
  EXPECT_NE(fast_hash(std::vector<std::byte>(3)), fast_hash(std::vector<std::byte>(4)));
}

TEST(FastHash, PartsGiveTheHashOfTheWhole) {
  const std::vector<std::byte> bytes = some_bytes(1000);
  for (const size_t part : {size_t{1}, size_t{7}, size_t{64}, size_t{65}, size_t{333}}) {
    FastHash hash;
    for (size_t at = 0; at < bytes.size(); at += part)
      hash.update(std::span(bytes).subspan(at, std::min(part, bytes.size() - at)));
    EXPECT_EQ(hash.finish(), fast_hash(bytes)) << part;
  }
}

TEST(FastHash, IsTheSameEverywhere) {
  EXPECT_EQ(fast_hash(some_bytes(100)), "ed5bcd624ab7707f5a048ec3958dae9d");
}

TEST(FastHash, HashesFiles) {
  const test::TemporaryFolder folder;
  write_whole_file(folder / "a", "first");
  write_whole_file(folder / "b", "second");
  const std::vector<std::string> paths = {folder / "a", folder / "b"};
  EXPECT_EQ(fast_hash_of_files(paths), fast_hash(std::as_bytes(std::span("firstsecond", 11))));
  EXPECT_THROW(fast_hash_of_files(std::vector<std::string>{folder / "none"}), Error);
}

}  // namespace
}  // namespace prism
