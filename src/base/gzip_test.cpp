// Tests of unpacking gzip: every kind of block, several members, and damaged files.
#include "base/gzip.h"

#include <gtest/gtest.h>

#include "prism/error.h"

namespace prism {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string unpacked(const std::string& bytes, uint64_t limit = 1000) {
  return gunzip(std::as_bytes(std::span(bytes)), "test.gz", limit);
}

// Made by Python's gzip.compress with levels 0 and 9.
const std::string kStored =
    from_hex("1f8b0800000000000403010c00f3ff73746f7265642062797465737877a60f0c000000");
const std::string kFixed = from_hex("1f8b08000000000002034b4c848224004a9c18d50a000000");
const std::string kDynamic = from_hex(
    "1f8b0800000000000203cbc92f2e56284fcd4ccf28295628294acccc53282e492d803273f3535273b09039205dc84a"
    "3095a39a0911039b9c83d74664129b1160ddc876c2142149a03a002c81b019491d8647512d44684472254c092e3b70"
    "2b0200a4b9e2d16a010000");

TEST(Gzip, UnpacksEveryKindOfBlock) {
  EXPECT_TRUE(is_gzip(std::as_bytes(std::span(kFixed))));
  EXPECT_FALSE(is_gzip(std::as_bytes(std::span("plain", 5))));
  EXPECT_EQ(unpacked(kStored), "stored bytes");
  EXPECT_EQ(unpacked(kFixed), "aaaaaaaaab");
  const std::string text = unpacked(kDynamic);
  EXPECT_EQ(text.size(), 362u);
  EXPECT_EQ(text.substr(0, 40), "loss weights train step train model mode");
  EXPECT_EQ(text.substr(text.size() - 20), "eights model weights");
  EXPECT_EQ(unpacked(kStored + kFixed), "stored bytesaaaaaaaaab");
}

TEST(Gzip, RefusesDamage) {
  EXPECT_THROW(unpacked(kFixed, 9), Error) << "more than the limit";
  EXPECT_THROW(unpacked("no gzip at all"), Error);
  for (const std::string& whole : {kStored, kFixed, kDynamic}) {
    for (size_t length = 0; length < whole.size(); ++length)
      EXPECT_THROW(unpacked(whole.substr(0, length)), Error) << length;
    for (size_t i = 10; i < whole.size(); ++i) {  // the checksum finds every changed bit
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << i % 8);
      try {
        EXPECT_EQ(unpacked(damaged), unpacked(whole)) << "padding bits at " << i;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCorruptFile);
      }
    }
  }
}

}  // namespace
}  // namespace prism
