// Tests PLaMo's tokenizer with a small vocabulary. The ids are those of the published tokenizer.
#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/llm/tokenizer.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

using Ids = std::vector<int32_t>;
constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

// Five special tokens, 256 bytes, and pieces from 261 on.
TokenizerTables tables_with(const std::vector<std::pair<const char*, float>>& pieces) {
  TokenizerTables tables;
  tables.model = "plamo2";
  const auto add = [&](std::string_view text, TokenType type, float score = 0) {
    tables.tokens.push_back(text);
    tables.types.push_back(type);
    tables.scores.push_back(score);
  };
  add("<|plamo:unk|>", TokenType::unknown);
  for (const char* name : {"<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>", "<|plamo:op|>"})
    add(name, TokenType::control);
  const auto names = std::make_shared<std::vector<std::string>>();
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    names->push_back(name);
  }
  for (const std::string& name : *names) add(name, TokenType::byte);
  tables.keep_alive = names;
  for (const auto& [text, score] : pieces) add(text, TokenType::normal, score);
  return tables;
}

TokenizerTables small_tables() {
  return tables_with({{"a", -2},     {"b", -2.5f},   {"c", -3},       {"ab", -4},
                      {"bc", -4.2f}, {"abc", -9},    {"x", -2},       {"y", -2},
                      {"xy", -4},    {"日本", -6},   {"本語", -5.5f}, {"語", -7},
                      {"dd", -1500}, {"eee", -2000}, {" ", -1},       {"    ", -1.5f},
                      {"aaaa", -3},  {"bab", -6.4f}, {"\n", -1},      {"\n\n\n", -1.25f}});
}

TEST(TokenizerPlamo, TakesTheBestSumFromTheEnd) {
  const Tokenizer tokenizer(small_tables());
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{261, 265}));
  EXPECT_EQ(tokenizer.encode("ababc"), (Ids{264, 261, 265}));
  EXPECT_EQ(tokenizer.encode("bbabab"), (Ids{262, 278, 264}));
  EXPECT_EQ(tokenizer.encode("日本語"), (Ids{270, 272}));
  EXPECT_EQ(tokenizer.encode("a    b"), (Ids{261, 276, 262}));
  // Of equal sums the longer token counts.
  EXPECT_EQ(tokenizer.encode("xyx"), (Ids{269, 267}));
  // A byte costs 1000; a token of -2000 or less is never chosen.
  EXPECT_EQ(tokenizer.encode("ddd"), (Ids{273, 105}));
  EXPECT_EQ(tokenizer.encode("eeee"), (Ids{106, 106, 106, 106}));
}

TEST(TokenizerPlamo, CharactersWithoutATokenBecomeBytes) {
  const Tokenizer tokenizer(small_tables());
  EXPECT_EQ(tokenizer.encode("本日本"), (Ids{235, 161, 177, 270}));
  EXPECT_EQ(tokenizer.encode(std::string_view("é🦙a\0", 8)),
            (Ids{200, 174, 245, 164, 171, 158, 261, 5}));
  EXPECT_EQ(tokenizer.encode("<0x41>"), (Ids{65, 53, 267, 57, 54, 67}));
  EXPECT_EQ(tokenizer.encode("\ufeffa"), (Ids{244, 192, 196, 261}));
  // Each invalid byte is U+FFFD.
  EXPECT_EQ(tokenizer.encode("\xe6\x97"
                             "a\xff"),
            tokenizer.encode("\ufffd\ufffda\ufffd"));
  for (const std::string text : {"本日本 é🦙\n\n\n\nabc", "\t<0x41> dd", "\ufeffab"})
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(TokenizerPlamo, SpecialTokensAreNoText) {
  const Tokenizer tokenizer(small_tables());
  EXPECT_EQ(tokenizer.encode("a<|plamo:op|>b"), (Ids{261, 4, 262}));
  const std::string text = "a<|plamo:op|>b<|plamo:unk|>";
  const Ids plain = tokenizer.encode(text, kPlain);
  EXPECT_EQ(std::ranges::count_if(plain, [](int32_t id) { return id < 5; }), 0);
  EXPECT_EQ(tokenizer.decode(plain), text);
  EXPECT_EQ(tokenizer.bos(), 1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_EQ(tokenizer.unknown(), 0);
  EXPECT_FALSE(tokenizer.adds_bos());
  // Tokens that fill up a vocabulary are in no text.
  TokenizerTables tables = small_tables();
  tables.tokens.push_back("[PAD1]");
  tables.types.push_back(TokenType::unused);
  tables.scores.push_back(0);
  EXPECT_EQ(Tokenizer(tables).encode("[PAD1]"), tokenizer.encode("[PAD1]"));
}

TEST(TokenizerPlamo, Plamo3CutsAroundLongRuns) {
  TokenizerTables tables = small_tables();
  const Tokenizer uncut(tables);
  EXPECT_EQ(uncut.encode("aaaaaab"), (Ids{277, 261, 264}));
  EXPECT_EQ(uncut.encode("bbbbab"), (Ids{262, 262, 262, 278}));
  tables.break_repeated = 4;
  tables.break_spaces = 3;
  const Tokenizer cut(tables);
  EXPECT_EQ(cut.encode("aaaaaab"), (Ids{277, 261, 261, 262}));
  EXPECT_EQ(cut.encode("bbbbab"), (Ids{262, 262, 262, 262, 264}));
  EXPECT_EQ(cut.encode("aaab"), (Ids{261, 261, 264}));
  EXPECT_EQ(cut.encode("\n\n\n\n\n"), (Ids{280, 279, 279}));
  tables = tables_with({{"a", -1}, {" ", -1}, {"a ", -1}, {"\n", -1}, {"\na", -1}});
  tables.break_repeated = 4;
  tables.break_spaces = 3;
  EXPECT_EQ(Tokenizer(tables).encode("a   a"), (Ids{261, 262, 262, 262, 261}));
  EXPECT_EQ(Tokenizer(tables).encode("a  a"), (Ids{263, 262, 261}));
  // Line feeds are never cut out.
  EXPECT_EQ(Tokenizer(tables).encode("\n\n\n\n\na"), (Ids{264, 264, 264, 264, 265}));
}

// Every segmentation of short texts, by exhaustive search.
TEST(TokenizerPlamo, NoSegmentationIsBetter) {
  const TokenizerTables tables = tables_with({{"a", -2},
                                              {"aa", -3},
                                              {"ab", -2.5f},
                                              {"aba", -4},
                                              {"ba", -1.5f},
                                              {"bab", -3.5f},
                                              {"abab", -5},
                                              {"bbbab", -6},
                                              {"aabaab", -7.5f}});
  const Tokenizer tokenizer(tables);
  const auto score_of = [&](int32_t id) {
    return id < 261 ? -1000.f : tables.scores[static_cast<size_t>(id)];
  };
  const auto best_sum = [&](const auto& self, std::string_view text) -> float {
    if (text.empty()) return 0;
    float best = -1000 + self(self, text.substr(1));
    for (size_t bytes = 1; bytes <= text.size(); ++bytes)
      if (const int32_t id = tokenizer.find(text.substr(0, bytes)); id >= 0)
        best = std::max(best, score_of(id) + self(self, text.substr(bytes)));
    return best;
  };
  std::mt19937 random(test_seed());
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += "abb"[random() % 3];
    float sum = 0;
    for (const int32_t id : tokenizer.encode(text)) sum += score_of(id);
    ASSERT_FLOAT_EQ(sum, best_sum(best_sum, text)) << text;
  }
}

TEST(TokenizerPlamo, RefusesWhatIsNoVocabulary) {
  const auto refusal = [](const TokenizerTables& tables) -> std::string {
    try {
      const Tokenizer tokenizer(tables);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptFile);
      return error.what();
    }
    return "accepted";
  };
  const auto has = [](const std::string& text, const char* part) {
    return testing::AssertionResult(text.find(part) != text.npos) << text;
  };
  TokenizerTables tables = small_tables();
  tables.tokens[5 + 0x41] = "<0x4>";
  EXPECT_TRUE(has(refusal(tables), "the byte token <0x41> is absent"));
  tables = small_tables();
  tables.types[5 + 0xff] = TokenType::normal;
  EXPECT_TRUE(has(refusal(tables), "the byte token <0xFF> is absent"));
  for (const float score :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e30f}) {
    tables = small_tables();
    tables.scores[261] = score;
    EXPECT_TRUE(has(refusal(tables), "token 261 has the score"));
  }
  tables = small_tables();
  tables.scores.clear();
  EXPECT_TRUE(has(refusal(tables), "scores has 0 entries for 281 tokens"));
  tables = small_tables();
  tables.break_spaces = -1;
  EXPECT_TRUE(has(refusal(tables), "positive numbers are needed"));
  tables = small_tables();
  const std::string huge(size_t{9} << 20, 'a');
  tables.tokens.back() = huge;
  EXPECT_TRUE(has(refusal(tables), "at most 8388607 can be in the table"));
}

}  // namespace
}  // namespace prism::llm
