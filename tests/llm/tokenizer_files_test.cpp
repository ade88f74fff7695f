// Tests tokenizers with real vocabularies against the ids in ../shared/tokenizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"
#include "support/models/tokenizer_texts.h"
#include "support/paths.h"

namespace prism::llm {
namespace {

class TokenizerFiles : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerFiles, GivesTheExpectedIds) {
  const std::filesystem::path folder = test::shared_dir() / "tokenizers";
  const std::string name = GetParam();
  if (!exists(folder / (name + ".gguf"))) GTEST_SKIP() << "no " << name << ".gguf in " << folder;
  const Tokenizer tokenizer = Tokenizer::from(GgufFile::open(folder / (name + ".gguf")));
  const test::TokenizerTexts cases = test::tokenizer_texts(name);
  const std::vector<std::string>& texts = cases.texts;
  const std::vector<std::vector<int32_t>>& expected = cases.ids;
  ASSERT_GT(texts.size(), 40u);
  ASSERT_GE(texts.size(), expected.size());
  ASSERT_LE(texts.size(), expected.size() + 1);  // the last text may be the empty one
  const EncodeOptions plain{.add_special = false, .parse_special = false};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i], plain), expected[i]) << "text " << i << ": " << texts[i];
    if (tokenizer.model() != "bert") {
      EXPECT_EQ(tokenizer.decode(expected[i]), texts[i]);
    }
  }
  // The whole file at once, twice: the word cache must not change the result.
  const std::string& all = cases.all;
  const auto first = tokenizer.encode(all, plain);
  EXPECT_EQ(tokenizer.encode(all, plain), first);
  EXPECT_EQ(Tokenizer::from(GgufFile::open(folder / (name + ".gguf"))).encode(all, plain), first);
  if (tokenizer.model() != "bert") {
    EXPECT_EQ(tokenizer.decode(first), all);
  }
}

INSTANTIATE_TEST_SUITE_P(Shared, TokenizerFiles,
                         testing::Values("bert-bge", "deepseek-coder", "falcon", "gpt-2",
                                         "llama-spm"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

Tokenizer open(const std::string& name) {
  return Tokenizer::from(GgufFile::open(test::shared_dir() / "tokenizers" / (name + ".gguf")));
}

TEST(TokenizerFiles, AddWhatTheModelsWereTrainedWith) {
  if (!exists(test::shared_dir() / "tokenizers")) GTEST_SKIP() << "no ../shared/tokenizers";
  EXPECT_EQ(open("llama-spm").encode("Hello"), (std::vector<int32_t>{1, 15043}));
  EXPECT_EQ(open("llama-spm").encode("<s>Hello</s>"), (std::vector<int32_t>{1, 15043, 2}));
  EXPECT_EQ(open("llama-spm").encode(""), std::vector<int32_t>{1});
  EXPECT_EQ(open("gpt-2").encode("Hello<|endoftext|>"), (std::vector<int32_t>{15496, 50256}));
  EXPECT_EQ(open("bert-bge").encode("hello"), (std::vector<int32_t>{101, 7592, 102}));
  EXPECT_EQ(open("deepseek-coder").encode("")[0], 32013);
  EXPECT_TRUE(open("gpt-2").ends_text(50256));
  EXPECT_TRUE(open("llama-spm").ends_text(2));
  EXPECT_FALSE(open("llama-spm").ends_text(1));
  EXPECT_EQ(open("llama-spm").piece(13), "\n");
}

TEST(TokenizerFiles, KeepBytesThatAreNoText) {
  if (!exists(test::shared_dir() / "tokenizers")) GTEST_SKIP() << "no ../shared/tokenizers";
  // Without ff and fe, which Falcon's vocabulary lacks.
  const std::string bytes = "a\xc3 b\xe4\xbd c\xf0\x9f\xa6 \x80";
  for (const char* name : {"gpt-2", "llama-spm", "falcon", "deepseek-coder"}) {
    const Tokenizer tokenizer = open(name);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes) << name;
  }
}

}  // namespace
}  // namespace prism::llm
