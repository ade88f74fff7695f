// Tests every tokenizer model with small vocabularies.
#include "prism/llm/tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/utf8.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/tokenizer/pre_tokenizer.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

using Ids = std::vector<int32_t>;
constexpr auto kNormal = TokenType::normal, kControl = TokenType::control,
               kUser = TokenType::user_defined;

std::shared_ptr<std::vector<std::string>> byte_names() {
  auto names = std::make_shared<std::vector<std::string>>();
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    names->push_back(name);
  }
  return names;
}

void add(TokenizerTables* tables, std::string_view text, TokenType type = kNormal,
         float score = 0) {
  tables->tokens.push_back(text);
  tables->types.push_back(type);
  tables->scores.push_back(score);
}

// <unk> <s> </s>, 256 bytes, then pieces from id 259 on.
TokenizerTables spm_tables() {
  TokenizerTables tables;
  tables.model = "llama";
  add(&tables, "<unk>", TokenType::unknown);
  add(&tables, "<s>", kControl);
  add(&tables, "</s>", kControl);
  const auto bytes = byte_names();
  for (const std::string& name : *bytes) add(&tables, name, TokenType::byte);
  tables.keep_alive = bytes;
  float score = 0;
  for (const char* piece : {"▁", "a", "b", "c", "ab", "bc", "▁a", "▁ab", "▁▁"})
    add(&tables, piece, kNormal, score -= 1);
  return tables;
}

TEST(TokenizerSpm, MergesByScoreAndFallsBackToBytes) {
  const Tokenizer tokenizer(spm_tables());
  const auto id = [&](std::string_view text) { return tokenizer.find(text); };
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{1, id("▁ab"), id("c")}));
  // "ab" has a better score than "bc" and "▁a".
  EXPECT_EQ(tokenizer.encode("bc"), (Ids{1, id("▁"), id("bc")}));
  EXPECT_EQ(tokenizer.encode("a  b"), (Ids{1, id("▁a"), id("▁▁"), id("b")}));
  EXPECT_EQ(tokenizer.encode("é"), (Ids{1, id("▁"), 3 + 0xc3, 3 + 0xa9}));
  EXPECT_EQ(tokenizer.encode(""), Ids{1});
  EXPECT_EQ(tokenizer.encode("", {.add_special = false}), Ids{});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("abc é\n  ab")), "abc é\n  ab");
}

TEST(TokenizerSpm, PutsASpaceBehindSpecialTokens) {
  const Tokenizer tokenizer(spm_tables());
  const auto id = [&](std::string_view text) { return tokenizer.find(text); };
  EXPECT_EQ(tokenizer.encode("a</s>a"), (Ids{1, id("▁a"), 2, id("▁a")}));
  EXPECT_EQ(tokenizer.encode("<s>a"), (Ids{1, id("▁a")})) << "no second <s>";
  const Ids plain = tokenizer.encode("a</s>", {.add_special = false, .parse_special = false});
  EXPECT_EQ(plain, (Ids{id("▁a"), 3 + '<', 3 + '/', 3 + 's', 3 + '>'}));
  TokenizerTables without = spm_tables();
  without.add_space_prefix = false;
  EXPECT_EQ(Tokenizer(without).encode("a a"), (Ids{1, id("a"), id("▁a")}));
}

// A direct implementation of merging: the best score first, ties to the leftmost.
Ids merge_plainly(const Tokenizer& tokenizer, const std::vector<float>& scores,
                  const std::string& text) {
  std::vector<std::string> symbols = {"▁"};
  for (size_t at = 0; at < text.size();) {
    const uint32_t bytes = utf8_at(text, at).bytes;
    symbols.push_back(text[at] == ' ' ? "▁" : text.substr(at, bytes));
    at += bytes;
  }
  while (true) {
    int best = -1;
    float best_score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const int32_t id = tokenizer.find(symbols[i] + symbols[i + 1]);
      if (id < 0 || (best >= 0 && scores[static_cast<size_t>(id)] <= best_score)) continue;
      best = static_cast<int>(i);
      best_score = scores[static_cast<size_t>(id)];
    }
    if (best < 0) break;
    symbols[static_cast<size_t>(best)] += symbols[static_cast<size_t>(best) + 1];
    symbols.erase(symbols.begin() + best + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols) {
    if (const int32_t id = tokenizer.find(symbol); id >= 0)
      ids.push_back(id);
    else
      for (const unsigned char byte : symbol) ids.push_back(3 + byte);
  }
  return ids;
}

TEST(TokenizerSpm, MergesAsDefinedWhereverItCuts) {
  const unsigned seed = test_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> characters = {"a", "b", "c", " ", " ", "é", "\n", "▁", "\xff"};
  for (int vocabulary = 0; vocabulary < 20; ++vocabulary) {
    // Random tokens of two to four characters, some with spaces.
    TokenizerTables tables = spm_tables();
    auto texts = std::make_shared<std::vector<std::string>>(40);
    for (std::string& text : *texts)
      for (size_t n = 2 + random() % 3; n > 0; --n) text += characters[random() % 7];
    for (std::string& text : *texts)
      for (size_t at; (at = text.find(' ')) != text.npos;) text.replace(at, 1, "▁");
    for (const std::string& text : *texts)
      add(&tables, text, kNormal, static_cast<float>(random() % 50));
    tables.keep_alive = std::make_shared<std::pair<std::shared_ptr<const void>, decltype(texts)>>(
        tables.keep_alive, texts);
    const Tokenizer tokenizer(tables);
    for (int round = 0; round < 50; ++round) {
      std::string text;
      for (size_t n = 1 + random() % 30; n > 0; --n)
        text += characters[random() % characters.size()];
      ASSERT_EQ(tokenizer.encode(text, {.add_special = false}),
                merge_plainly(tokenizer, tables.scores, text))
          << text;
    }
  }
}

TEST(TokenizerSpm, UnknownWhereThereAreNoBytes) {
  TokenizerTables tables;
  tables.model = "llama";
  add(&tables, "<unk>", TokenType::unknown);
  add(&tables, "▁a");
  add(&tables, "▁");
  add(&tables, "a");
  tables.add_bos = false;
  EXPECT_EQ(Tokenizer(tables).encode("aé"), (Ids{1, 0}));
}

// The 256 letters of GPT-2's alphabet in byte order, then merged tokens.
TokenizerTables bpe_tables(std::string pre) {
  TokenizerTables tables;
  tables.model = "gpt2";
  tables.pre = std::move(pre);
  auto letters = std::make_shared<std::vector<std::string>>();
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    letters->emplace_back();
    append_utf8(printable ? byte : next++, &letters->back());
  }
  for (const std::string& letter : *letters) add(&tables, letter);
  tables.keep_alive = letters;
  tables.merges = {"h e", "l l", "he ll", "hell o", "Ġ hello", "Ġ w", "1 2", "Ã ©"};
  for (const char* token : {"he", "ll", "hell", "hello", "Ġhello", "Ġw", "12", "Ã©"})
    add(&tables, token);
  add(&tables, "<|im_end|>", kControl);
  add(&tables, "<tool>", kUser);
  add(&tables, "Ġworld");
  return tables;
}

TEST(TokenizerBpe, MergesInTheOrderOfTheList) {
  const Tokenizer tokenizer(bpe_tables("gpt-2"));
  const auto id = [&](std::string_view text) { return tokenizer.find(text); };
  EXPECT_EQ(tokenizer.encode("hello hello"), (Ids{id("hello"), id("Ġhello")}));
  EXPECT_EQ(tokenizer.encode("helo"), (Ids{id("he"), 'l', 'o'}));
  EXPECT_EQ(tokenizer.encode("é"), Ids{id("Ã©")});
  EXPECT_EQ(tokenizer.encode("\xff"), Ids{0xff});
  EXPECT_EQ(tokenizer.encode(" world"), (Ids{id("Ġw"), 'o', 'r', 'l', 'd'}));
  // With ignore_merges, a word that is a token is not merged.
  const Tokenizer ignoring(bpe_tables("llama-bpe"));
  EXPECT_EQ(ignoring.encode(" world"), Ids{id("Ġworld")});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hello é\n 12 \xe4\xbd")), "hello é\n 12 \xe4\xbd");
}

TEST(TokenizerBpe, ParsesSpecialTokens) {
  const Tokenizer tokenizer(bpe_tables("gpt-2"));
  const int32_t end = tokenizer.find("<|im_end|>"), tool = tokenizer.find("<tool>");
  EXPECT_EQ(tokenizer.encode("a<|im_end|>b"), (Ids{'a', end, 'b'}));
  // User-defined tokens are text, and always parsed.
  const Ids plain = tokenizer.encode("<tool><|im_end|>", {.parse_special = false});
  EXPECT_EQ(plain[0], tool);
  EXPECT_EQ(plain.size(), 11u);
  EXPECT_EQ(tokenizer.piece(end), "");
  EXPECT_EQ(tokenizer.piece(end, true), "<|im_end|>");
  EXPECT_EQ(tokenizer.piece(tool), "<tool>");
  EXPECT_EQ(tokenizer.eot(), end);
  EXPECT_TRUE(tokenizer.ends_text(end));
  EXPECT_FALSE(tokenizer.ends_text(tool));
  EXPECT_EQ(tokenizer.bos(), -1);
}

TEST(TokenizerBpe, BosByPreTypeAndFile) {
  TokenizerTables tables = bpe_tables("llama-bpe");
  tables.bos = 'B';
  EXPECT_EQ(Tokenizer(tables).encode("a"), (Ids{'B', 'a'}));
  tables.add_bos = false;
  EXPECT_EQ(Tokenizer(tables).encode("a"), Ids{'a'});
  tables.add_eos = true;
  tables.eos = 'E';
  EXPECT_EQ(Tokenizer(tables).encode("a"), (Ids{'a', 'E'}));
  EXPECT_EQ(Tokenizer(tables).encode("a", {.add_special = false}), Ids{'a'});
  tables.bos = 4294967295;
  tables.add_bos = true;
  EXPECT_EQ(Tokenizer(tables).encode("a"), (Ids{'a', 'E'}))
      << "an id out of range counts as absent";
}

TEST(TokenizerBpe, HarmonysEndIsNoEnd) {
  TokenizerTables tables = bpe_tables("gpt-4o");
  for (const char* text : {"<|end|>", "<|return|>", "<|call|>"}) add(&tables, text, kControl);
  const Tokenizer tokenizer(tables);
  EXPECT_FALSE(tokenizer.ends_text(tokenizer.find("<|end|>")));
  EXPECT_TRUE(tokenizer.ends_text(tokenizer.find("<|return|>")));
  EXPECT_TRUE(tokenizer.ends_text(tokenizer.find("<|call|>")));
}

TEST(TokenizerBpe, OneTokenizerServesManyThreads) {
  const Tokenizer tokenizer(bpe_tables("qwen2"));
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "hello world 12 " + std::to_string(i);
  const Ids expected = tokenizer.encode(text);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (Ids& ids : found) threads.emplace_back([&] { ids = tokenizer.encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, expected);
}

TEST(TokenizerRaw, SpacesAreMarksAndBytesHaveNames) {
  TokenizerTables tables = spm_tables();
  tables.model = "gemma4";
  tables.merges = {"▁ a", "a b"};
  tables.bos = 1;
  add(&tables, "\n\n");
  const Tokenizer tokenizer(tables);
  const auto id = [&](std::string_view text) { return tokenizer.find(text); };
  EXPECT_EQ(tokenizer.encode("ab a\n\né"),
            (Ids{1, id("ab"), id("▁a"), id("\n\n"), 3 + 0xc3, 3 + 0xa9}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab a\n\né")), "ab a\n\né");
}

TokenizerTables wordpiece_tables() {
  TokenizerTables tables;
  tables.model = "bert";
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁hello", "▁wor", "ld", "▁,",
                           "▁cafe", "▁中", "▁文", "s", "▁İ", "▁ᄀ", "ᅡ", "▁!"})
    add(&tables, text, text[0] == '[' ? kControl : kNormal);
  tables.unknown = 1;
  tables.bos = 2;
  tables.separator = 3;
  return tables;
}

TEST(TokenizerWordPiece, NormalisesAndTakesTheLongestTokens) {
  const Tokenizer tokenizer(wordpiece_tables());
  const auto id = [&](std::string_view text) { return tokenizer.find(text); };
  EXPECT_EQ(tokenizer.encode("Hello, WORLDs"),
            (Ids{2, id("▁hello"), id("▁,"), id("▁wor"), id("ld"), id("s"), 3}));
  EXPECT_EQ(tokenizer.encode("CAFÉ cafe\xcc\x81", {.add_special = false}),
            (Ids{id("▁cafe"), id("▁cafe")}));
  EXPECT_EQ(tokenizer.encode("hello中文s", {.add_special = false}),
            (Ids{id("▁hello"), id("▁中"), id("▁文"), 1}));
  EXPECT_EQ(tokenizer.encode("hex hello", {.add_special = false}), (Ids{1, id("▁hello")}));
  EXPECT_EQ(tokenizer.encode("가", {.add_special = false}), (Ids{id("▁ᄀ"), id("ᅡ")}));
  EXPECT_EQ(tokenizer.encode(std::string(101, 'h')), (Ids{2, 1, 3}));
  EXPECT_EQ(tokenizer.encode("hel\xe2\x80\x8blo!\x01", {.add_special = false}),
            (Ids{id("▁hello"), id("▁!")}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hello world")), "hello world");
}

TEST(TokenizerBpe, WhiteSpaceOnlySeparatesWords) {
  TokenizerTables tables;
  tables.model = "gpt2";
  tables.pre = "whitespace";
  add(&tables, "<unk>", TokenType::unknown);
  for (const char* text : {"a", "b", "ab", "中", "文", "中文"}) add(&tables, text);
  tables.merges = {"a b", "中 文"};
  tables.unknown = 0;
  const auto ids = [&](std::string_view text) { return Tokenizer(tables).encode(text); };
  EXPECT_EQ(ids(" ab\n a\u3000中文b "), (Ids{3, 1, 6, 2}));
  EXPECT_EQ(ids("aéb"), (Ids{1, 0, 2}));  // one unknown character, not its bytes
  EXPECT_EQ(ids("AB"), (Ids{0, 0}));
  tables.lowercase = true;
  EXPECT_EQ(ids("AB"), Ids{3});
}

// Only WordPiece ends single texts with a separator; elsewhere it stands between two.
TEST(TokenizerBpe, SeparatorsAreForPairs) {
  TokenizerTables tables;
  tables.model = "gpt2";
  tables.pre = "roberta-bpe";
  add(&tables, "<s>", kControl);
  add(&tables, "</s>", kControl);
  add(&tables, "a");
  tables.merges = {"a a"};
  tables.bos = 0, tables.eos = 1, tables.separator = 1;
  tables.add_bos = tables.add_eos = true;
  const Tokenizer tokenizer(tables);
  EXPECT_TRUE(tokenizer.adds_separator());
  EXPECT_EQ(tokenizer.encode("a"), (Ids{0, 2, 1}));
  tables.add_separator = false;
  EXPECT_FALSE(Tokenizer(tables).adds_separator());
}

TokenizerTables unigram_tables() {
  TokenizerTables tables;
  tables.model = "t5";
  add(&tables, "<pad>", kControl);
  add(&tables, "</s>", kControl);
  add(&tables, "<unk>", TokenType::unknown);
  const std::vector<std::pair<const char*, float>> pieces = {
      {"▁", -2},  {"a", -3},     {"b", -3.5}, {"c", -4},
      {"ab", -5}, {"bc", -5.25}, {"abc", -9}, {"▁ab", -6.5}};
  for (const auto& [text, score] : pieces) add(&tables, text, kNormal, score);
  return tables;
}

TEST(TokenizerUnigram, TakesTheTokensWithTheBestSum) {
  TokenizerTables tables = unigram_tables();
  const Tokenizer tokenizer(tables);
  const auto id = [&](std::string_view text) { return tokenizer.find(text); };
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{id("▁ab"), 1}));
  EXPECT_EQ(tokenizer.encode("bc", {.add_special = false}), (Ids{id("▁"), id("bc")}));
  // Adjacent unknown characters become one token.
  EXPECT_EQ(tokenizer.encode("aéüa", {.add_special = false}), (Ids{id("▁"), id("a"), 2, id("a")}));
  EXPECT_EQ(tokenizer.encode("a  b", {.add_special = false}),
            (Ids{id("▁"), id("a"), id("▁"), id("▁"), id("b")}));
  tables.remove_extra_spaces = true;
  EXPECT_EQ(Tokenizer(tables).encode("  a  b  ", {.add_special = false}),
            (Ids{id("▁"), id("a"), id("▁"), id("b")}));
  tables.add_space_prefix = false;
  EXPECT_EQ(Tokenizer(tables).encode("  a  b  ", {.add_special = false}),
            (Ids{id("a"), id("▁"), id("b")}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab cab")), "ab cab");
  // The sum must be the best over all segmentations, found by exhaustive search.
  const auto best_sum = [&](const auto& self, std::string_view text) -> float {
    if (text.empty()) return 0;
    float best = -1e9f;
    for (size_t bytes = 1; bytes <= text.size(); ++bytes) {
      const int32_t token = tokenizer.find(text.substr(0, bytes));
      if (token > 2)
        best = std::max(best,
                        tables.scores[static_cast<size_t>(token)] + self(self, text.substr(bytes)));
    }
    return best;
  };
  const unsigned seed = test_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 100; ++round) {
    std::string text, marked = "▁";
    for (size_t n = 1 + random() % 10; n > 0; --n) text += "abc"[random() % 3];
    float sum = 0;
    for (const int32_t token : tokenizer.encode(text, {.add_special = false}))
      sum += tables.scores[static_cast<size_t>(token)];
    ASSERT_FLOAT_EQ(sum, best_sum(best_sum, marked + text)) << text;
  }
}

TEST(TokenizerUnigram, NormalisesByTheMapOfTheFile) {
  // A handmade double array: "A" maps to "ab", "AB" to "c".
  std::vector<uint32_t> units(1200, 0);
  units[0] = 256u << 10;
  units[256 ^ 'A'] = 'A' | 1u << 8 | 512u << 10;
  const uint32_t after_a = (256 ^ 'A') ^ 512;
  units[after_a] = 0x80000000u;  // value 0: "ab"
  units[after_a ^ 'B'] = 'B' | 1u << 8 | 128u << 10;
  units[(after_a ^ 'B') ^ 128] = 0x80000000u | 3;  // value 3: "c"
  TokenizerTables tables = unigram_tables();
  const auto put = [&](uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8)
      tables.character_map.push_back(static_cast<uint8_t>(value >> shift));
  };
  put(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) put(unit);
  for (const char c : std::string_view("ab\0c\0", 5))
    tables.character_map.push_back(static_cast<uint8_t>(c));
  const Tokenizer tokenizer(tables);
  EXPECT_EQ(tokenizer.encode("AcABA"), tokenizer.encode("abccab"));
  // Truncated or out-of-range maps are ignored safely.
  tables.character_map.resize(4900);
  tables.character_map[4807] = 0xff;
  EXPECT_NO_THROW(Tokenizer(tables).encode("AcABA"));
  tables.character_map.resize(3);
  EXPECT_EQ(Tokenizer(tables).encode("abc"), tokenizer.encode("abc"));
}

TEST(Tokenizer, ModelsHaveOtherNames) {
  GgufWriter writer;
  std::string header;  // the tokenizer reads the file's bytes
  const auto from_file = [&] {
    header = writer.header();
    return Tokenizer::from(GgufFile::parse(std::as_bytes(std::span(header))));
  };
  writer.set("tokenizer.ggml.model", "whitespace");
  writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "a", "b", "ab"});
  writer.set("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  EXPECT_EQ(from_file().encode(" ab\n b"), (Ids{3, 2}));
  writer.set("tokenizer.ggml.model", "none");
  const std::vector<std::byte> table(12);
  writer.add_tensor("token_embd.weight", {3, 1}, DType::f32, table);
  EXPECT_EQ(from_file().size(), 3u);
  EXPECT_EQ(from_file().model(), "no_vocab");
  EXPECT_THROW(from_file().encode("a"), Error);
}

TEST(Tokenizer, TellsWhatIsWrong) {
  const auto code_of = [](TokenizerTables tables) {
    try {
      const Tokenizer tokenizer(std::move(tables));
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kIo;
  };
  TokenizerTables tables = bpe_tables("no-such-type");
  EXPECT_EQ(code_of(tables), ErrorCode::kNotSupported);
  try {
    const Tokenizer tokenizer(tables);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("llama-bpe"), std::string::npos) << error.what();
  }
  // A vocabulary of characters has no merges; a file must say so.
  tables = bpe_tables("gpt-2");
  tables.merges.clear();
  EXPECT_EQ(Tokenizer(tables).encode("hello").size(), 5u);
  GgufWriter writer;
  writer.set("tokenizer.ggml.model", "gpt2");
  writer.set("tokenizer.ggml.pre", "gpt-2");
  writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"h", "e"});
  std::string header;  // the tokenizer reads the file's bytes
  const auto from_file = [&] {
    header = writer.header();
    return Tokenizer::from(GgufFile::parse(std::as_bytes(std::span(header))));
  };
  EXPECT_THROW(from_file(), Error);
  writer.set("tokenizer.ggml.merges", std::vector<std::string>{});
  EXPECT_EQ(from_file().encode("hehe").size(), 4u);
  tables = spm_tables();
  tables.scores.pop_back();
  EXPECT_EQ(code_of(tables), ErrorCode::kCorruptFile);
  tables = spm_tables();
  tables.model = "hybriddna";
  EXPECT_EQ(code_of(tables), ErrorCode::kNotSupported);
  tables = TokenizerTables{};
  tables.model = "llama";
  EXPECT_EQ(code_of(tables), ErrorCode::kCorruptFile);
  EXPECT_THROW(Tokenizer(spm_tables()).piece(100000), Error);
  EXPECT_THROW(Tokenizer(spm_tables()).piece(-1), Error);
}

TEST(TextStream, GivesWholeCharactersOnly) {
  const Tokenizer tokenizer(bpe_tables("gpt-2"));
  TextStream stream(tokenizer);
  const std::string text = "aé中🦙b";
  std::string out;
  for (const unsigned char byte : text) {
    const std::string part = stream.put(byte);
    EXPECT_EQ(repair_utf8(part), part);
    EXPECT_EQ(utf8_valid_end(part, 0), part.size());
    out += part;
  }
  EXPECT_EQ(out + stream.finish(), text);
  // Invalid bytes do not hold back the text that follows.
  EXPECT_EQ(stream.put(0xe4), "");
  EXPECT_EQ(stream.put('a'), "\ufffda");
  EXPECT_EQ(stream.put(0xf0), "");
  EXPECT_EQ(stream.put(0x9f), "");
  EXPECT_EQ(stream.finish(), "\ufffd\ufffd");
  EXPECT_EQ(stream.put(0xff), "\ufffd");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, JoinsToWhatDecodeGives) {
  const Tokenizer tokenizer(spm_tables());
  const unsigned seed = test_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Ids ids;
    for (size_t n = random() % 12; n > 0; --n)
      ids.push_back(static_cast<int32_t>(random() % tokenizer.size()));
    TextStream stream(tokenizer, {.at_start = true});
    std::string out;
    for (const int32_t id : ids) out += stream.put(id);
    out += stream.finish();
    ASSERT_EQ(out, repair_utf8(tokenizer.decode(ids)));
  }
}

TEST(TextStream, KeepsOrDropsTheFirstSpace) {
  const Tokenizer tokenizer(spm_tables());
  const int32_t word = tokenizer.find("▁ab");
  EXPECT_EQ(TextStream(tokenizer).put(word), " ab");
  TextStream start(tokenizer, {.at_start = true});
  EXPECT_EQ(start.put(1), "");
  EXPECT_EQ(start.put(word), "ab");
  EXPECT_EQ(start.put(word), " ab");
  TextStream shown(tokenizer, {.special = true});
  EXPECT_EQ(shown.put(2), "</s>");
}

}  // namespace
}  // namespace prism::llm
