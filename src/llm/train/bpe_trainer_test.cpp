// Tests the BPE trainer against a naive one, and vocabularies on texts of all kinds.
#include "llm/train/bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "base/utf8.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/tokenizer/pre_tokenizer.h"
#include "llm/train/trained_vocabulary.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

// The definition: count all pairs of all words anew for every merge.
BpeMerges naive(const std::string& text, int64_t most_tokens) {
  std::vector<std::string_view> views;
  PreTokenizer("gpt-2").split(text, &views);
  std::vector<std::vector<int32_t>> words;
  for (const std::string_view view : views) {
    words.emplace_back();
    for (const char c : view) words.back().push_back(static_cast<unsigned char>(c));
  }
  BpeMerges result;
  for (int byte = 0; byte < 256; ++byte) result.tokens.emplace_back(1, static_cast<char>(byte));
  while (static_cast<int64_t>(result.tokens.size()) < most_tokens) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& word : words)
      for (size_t i = 1; i < word.size(); ++i) ++counts[{word[i - 1], word[i]}];
    std::pair<int32_t, int32_t> best;
    int64_t most = 1;
    for (const auto& [pair, count] : counts)  // in the order of ids
      if (count > most) best = pair, most = count;
    if (most < 2) break;
    const std::string joined = result.tokens[static_cast<size_t>(best.first)] +
                               result.tokens[static_cast<size_t>(best.second)];
    auto token =
        static_cast<int32_t>(std::ranges::find(result.tokens, joined) - result.tokens.begin());
    if (token == static_cast<int32_t>(result.tokens.size())) result.tokens.push_back(joined);
    result.merges.push_back(best);
    for (auto& word : words) {
      std::vector<int32_t> merged;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool here =
            i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second;
        merged.push_back(here ? token : word[i]);
        i += here;
      }
      word = merged;
    }
  }
  return result;
}

std::string random_text(std::mt19937& random, size_t words, const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    for (size_t n = 1 + random() % 6; n > 0; --n) text += parts[random() % parts.size()];
    text += random() % 5 ? " " : "\n";
  }
  return text;
}

TEST(BpeTrainer, EqualsTheNaiveOne) {
  std::mt19937 random(test_seed());
  for (int round = 0; round < 20; ++round) {
    // Few letters make many ties and overlaps: aaa, abab.
    const std::string text =
        random_text(random, 120,
                    round % 2 ? std::vector<std::string>{"a", "b", "ab"}
                              : std::vector<std::string>{"the", "a", "an", "é", "世", "s", "'s"});
    const BpeMerges got = learn_bpe(text, 340, "gpt-2"), wanted = naive(text, 340);
    ASSERT_EQ(got.merges, wanted.merges) << text;
    ASSERT_EQ(got.tokens, wanted.tokens) << text;
    ASSERT_EQ(learn_bpe(text, 340, "gpt-2").tokens, got.tokens) << "the same text, the same tokens";
  }
}

TEST(BpeTrainer, LongWordsAndSeparators) {
  std::string word;
  std::mt19937 random(1);
  for (int i = 0; i < 300000; ++i) word += static_cast<char>('a' + random() % 26);
  const auto start = std::chrono::steady_clock::now();
  const BpeMerges learned = learn_bpe(word, 2000, "gpt-2");
  EXPECT_EQ(learned.tokens.size(), 2000u);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 20) << "the time must not grow with the square of a word";
  for (const std::string& token : learn_bpe("ab|ab|ab|ab", 300, "gpt-2", "|").tokens)
    EXPECT_TRUE(token.size() == 1 || token == "ab") << token;
  EXPECT_EQ(learn_bpe("", 300, "gpt-2").tokens.size(), 256u);
  EXPECT_EQ(learn_bpe("ab", 300, "gpt-2").tokens.size(), 256u) << "no pair occurs twice";
}

TEST(BpeTrainer, CharactersAreSingleTokens) {
  const TrainedVocabulary vocabulary = TrainedVocabulary::of_characters("aé世😀世é");
  const Tokenizer tokenizer = vocabulary.tokenizer();
  EXPECT_EQ(tokenizer.encode("世é😀ab\n").size(), 6u);
  EXPECT_EQ(tokenizer.encode("界").size(), 3u) << "an unknown character is its bytes";
  EXPECT_EQ(vocabulary.size(), 256 + 1 + 2 + 3 + 1) << "characters, their starts, the end";
  EXPECT_EQ(TrainedVocabulary::of_characters("plain").tokenizer().encode("plain"),
            (std::vector<int32_t>{'p', 'l', 'a', 'i', 'n'}));
}

TEST(BpeTrainer, EveryTextComesBack) {
  std::mt19937 random(test_seed());
  const std::string learned = "the cat's naïve 世界 sat, 12 times.\n\n  on   the mat " +
                              random_text(random, 400, {"the", "cat", "é", "世", "12", "."});
  for (const TrainedVocabulary& vocabulary :
       {TrainedVocabulary::of_words(learned, 400), TrainedVocabulary::of_characters(learned)}) {
    const Tokenizer tokenizer = vocabulary.tokenizer();
    GgufWriter writer;
    vocabulary.write(writer);
    const std::string header = writer.header();
    const Tokenizer written = Tokenizer::from(GgufFile::parse(std::as_bytes(std::span(header))));
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (size_t n = random() % 40; n > 0; --n) {
        const uint32_t kinds[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};
        const uint32_t code = random() % kinds[random() % 4] + 1;
        append_utf8(code >= 0xd800 && code < 0xe000 ? ' ' : code, &text);
      }
      const std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = false});
      ASSERT_EQ(tokenizer.decode(ids), text);
      ASSERT_EQ(written.encode(text, {.parse_special = false}), ids) << "as the file has it";
    }
    const std::vector<int32_t> two = tokenizer.encode("a<|endoftext|>b");
    EXPECT_EQ(two, (std::vector<int32_t>{'a', tokenizer.eos(), 'b'}));
    EXPECT_FALSE(tokenizer.adds_bos());
  }
  EXPECT_THROW(TrainedVocabulary::of_words("text", 256), Error);
}

}  // namespace
}  // namespace prism::llm
