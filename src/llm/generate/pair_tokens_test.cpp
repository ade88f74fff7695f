// Tests the tokens of pairs with and without a template.
#include "llm/generate/pair_tokens.h"

#include <gtest/gtest.h>

#include "llm/gguf/gguf_writer.h"
#include "prism/error.h"
#include "support/models/letters.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

using Ids = std::vector<int32_t>;

// Letters begin at 4, 3 is a space, 1 and 2 begin and end a text.
class PairTokensTest : public testing::Test {
 protected:
  PairTokensTest() { test::set_letters(writer_); }
  Ids with(const std::string& query, const std::string& document, int64_t most = 100) {
    writer_.write(path_);
    const GgufFile file = GgufFile::open(path_);
    const Tokenizer tokenizer = Tokenizer::from(file);
    return PairTokens(file, tokenizer, query, most).with(document);
  }
  const test::TemporaryFolder folder_;
  const std::string path_ = (folder_.path() / "letters.gguf").string();
  GgufWriter writer_;
};

TEST_F(PairTokensTest, WhatSurroundsTextsSurroundsPairs) {
  writer_.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(with("a", "bc"), (Ids{1, 4, 5, 6}));  // as decoders have it: no separator at all
  writer_.set("tokenizer.ggml.add_eos_token", true);
  EXPECT_EQ(with("a", "bc"), (Ids{1, 4, 2, 5, 6, 2}));
  writer_.set("tokenizer.ggml.add_sep_token", true);
  writer_.set("tokenizer.ggml.seperator_token_id", 3);
  EXPECT_EQ(with("a", "bc"), (Ids{1, 4, 2, 3, 5, 6, 2}));
  writer_.set("tokenizer.ggml.add_eos_token", false);
  EXPECT_EQ(with("a", "bc"), (Ids{1, 4, 3, 5, 6, 3}));
  // Text of control tokens is text.
  EXPECT_EQ(with("a", "</s>"), (Ids{1, 4, 3, 0, 0, 22, 0, 3}));
  EXPECT_EQ(with("a", "bcd", 6), (Ids{1, 4, 3, 5, 6, 3}));
  EXPECT_THROW(with("aaaa", "b", 7), Error);
}

TEST_F(PairTokensTest, TemplatesComeFirst) {
  writer_.set("tokenizer.ggml.add_space_prefix", false);
  writer_.set("tokenizer.chat_template.rerank", "<s>{query}0{document}1{query}</s>");
  EXPECT_EQ(with("a", "bc"), (Ids{1, 4, 30, 5, 6, 31, 4, 2}));
  // A query that names the document's place stays what it is.
  const Ids odd = with("{document}", "z");
  EXPECT_EQ(std::count(odd.begin(), odd.end(), 29), 1);
  EXPECT_EQ(with("a", "bcdefghi", 9), (Ids{1, 4, 30, 5, 6, 7, 31, 4, 2}));
  EXPECT_THROW(with("a", "b", 6), Error);
}

}  // namespace
}  // namespace prism::llm
