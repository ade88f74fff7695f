// Tests the files of the prompt cache: what is written is read, and any damage is found.
#include "llm/generate/prompt_file.h"

#include <gtest/gtest.h>

#include "base/fast_hash.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 5 + 1);
  return bytes;
}

class PromptFiles : public testing::Test {
 protected:
  std::vector<std::byte> memory_ = some_bytes(50);
  PromptFile file_{std::string(64, 'a'),
                   PromptFile::kNoParent,
                   {5, 0, -1, 70000},
                   {std::span(memory_).first(20), {}, std::span(memory_).subspan(20)}};
};

TEST_F(PromptFiles, AreReadAsWritten) {
  const std::vector<std::byte> bytes = file_.text();
  EXPECT_EQ(bytes.size(), PromptFile::bytes_of(4, 3, 50));
  const PromptFile read = PromptFile::parse(bytes);
  EXPECT_EQ(read.layout, file_.layout);
  EXPECT_EQ(read.parent, file_.parent);
  EXPECT_EQ(read.tokens, file_.tokens);
  ASSERT_EQ(read.layers.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::ranges::equal(read.layers[i], file_.layers[i]));
}

TEST_F(PromptFiles, AnyDamageIsFound) {
  std::vector<std::byte> bytes = file_.text();
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x10};
    EXPECT_THROW(PromptFile::parse(bytes), Error) << i;
    bytes[i] ^= std::byte{0x10};
    EXPECT_THROW(PromptFile::parse(std::span(bytes).first(i)), Error) << i;
  }
  bytes.push_back(std::byte{0});
  EXPECT_THROW(PromptFile::parse(bytes), Error);
}

TEST_F(PromptFiles, CountsAreCheckedEvenWithARightChecksum) {
  const std::vector<std::byte> right = file_.text();
  constexpr size_t kTokens = 8 + 2 * 64, kLayers = kTokens + 4, kSizes = kLayers + 4 + 4 * 4;
  for (const size_t at : {kTokens, kTokens + 3, kLayers, kLayers + 3, kSizes, kSizes + 7}) {
    std::vector<std::byte> bytes = right;
    bytes[at] ^= std::byte{0x81};
    bytes.resize(bytes.size() - 32);
    const std::string hash = fast_hash(bytes);
    const auto digits = std::as_bytes(std::span(hash));
    bytes.insert(bytes.end(), digits.begin(), digits.end());
    EXPECT_THROW(PromptFile::parse(bytes), Error) << at;
  }
}

TEST_F(PromptFiles, KeysDependOnEverything) {
  const std::string layout(64, 'a'), other(64, 'b');
  const std::vector<int32_t> tokens = {1, 2}, swapped = {2, 1};
  const std::string key = PromptFile::key(layout, PromptFile::kNoParent, tokens);
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(key, PromptFile::key(layout, PromptFile::kNoParent, tokens));
  EXPECT_NE(key, PromptFile::key(other, PromptFile::kNoParent, tokens));
  EXPECT_NE(key, PromptFile::key(layout, key, tokens));
  EXPECT_NE(key, PromptFile::key(layout, PromptFile::kNoParent, swapped));
}

}  // namespace
}  // namespace prism::llm
