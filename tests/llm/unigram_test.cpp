// Compares unigram tokenizers with SentencePiece on a vocabulary that it trained
// (tests/data/unigram), read from its own file and from tokenizer.json; and hostile files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <nlohmann/json.hpp>

#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_tokenizer.h"
#include "llm/convert/sentence_piece_model.h"
#include "llm/gguf/gguf_writer.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"
#include "support/models/hf_files.h"
#include "support/paths.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

using json = nlohmann::json;
using test::HfTestFolder;

constexpr int64_t kRows = 256;  // of the embedding: more than there are pieces

std::string file_of(const std::string& name) {
  std::ifstream in(test::source_dir() / "tests/data/unigram" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Tokenizer converted(const std::string& name, const std::string& content,
                    const std::string& settings = "{}") {
  const HfTestFolder folder(test::hf_model("llama"));
  std::filesystem::remove(folder.path("tokenizer.json"));
  folder.write(name, content);
  folder.write("tokenizer_config.json", settings);
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  write_tokenizer(HfFolder::open(folder.path()), kRows, writer);
  writer.write(folder.path("out.gguf"));
  return Tokenizer::from(GgufFile::open(folder.path("out.gguf")));
}

std::string base64(const std::string& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size() * 8; i += 6) {
    size_t digit = 0;
    for (size_t bit = i; bit < i + 6; ++bit) {
      const bool set = bit / 8 < bytes.size() && (bytes[bit / 8] >> (7 - bit % 8) & 1);
      digit = digit << 1 | (set ? 1u : 0u);
    }
    text += kDigits[digit];
  }
  return text.append((4 - text.size() % 4) % 4, '=');
}

json tokenizer_json() {
  const SentencePieceModel model = read_sentence_piece_model(file_of("unigram.model"));
  json pieces = json::array(), added = json::array();
  for (const SentencePieceModel::Piece& each : model.pieces) {
    if (each.type == TokenType::control)
      added.push_back({{"id", pieces.size()}, {"content", each.text}, {"special", true}});
    pieces.push_back({each.text, each.score});
  }
  json made;
  made["added_tokens"] = added;
  made["model"] = {{"type", "Unigram"}, {"unk_id", model.unknown}, {"vocab", pieces}};
  made["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "Precompiled"}, {"precompiled_charsmap", base64(model.character_map)}},
        {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}}}};
  made["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}};
  made["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single",
                             {{{"SpecialToken", {{"id", "<s>"}}}},
                              {{"Sequence", {{"id", "A"}}}},
                              {{"SpecialToken", {{"id", "</s>"}}}}}}};
  return made;
}

void expect_ids(const Tokenizer& found) {
  const json expected = json::parse(file_of("unigram.json"));
  const EncodeOptions plain{.add_special = false, .parse_special = false};
  ASSERT_GT(expected["texts"].size(), 100u);
  for (size_t i = 0; i < expected["texts"].size(); ++i) {
    const std::string text = expected["texts"][i];
    const std::vector<int32_t> ids = expected["ids"][i];
    EXPECT_EQ(found.encode(text, plain), ids) << i << ": " << text;
  }
}

TEST(Unigram, IdsAreThoseOfSentencePiece) {
  const Tokenizer own = converted("tokenizer.model", file_of("unigram.model"));
  expect_ids(own);
  EXPECT_EQ(own.model(), "t5");
  EXPECT_EQ(own.eos(), 2);
  EXPECT_TRUE(own.adds_eos());
  EXPECT_FALSE(own.adds_bos());
  expect_ids(converted("spiece.model", file_of("unigram.model")));
}

TEST(Unigram, OfTokenizerJson) {
  const Tokenizer tokenizer = converted("tokenizer.json", tokenizer_json().dump());
  expect_ids(tokenizer);
  // <s> the </s>; a pair has two of the last tokens in its middle.
  const std::vector<int32_t> ids = tokenizer.encode("the");
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids.back(), 2);
  EXPECT_NE(ids[ids.size() - 2], 2);
  EXPECT_TRUE(tokenizer.adds_separator());
  EXPECT_EQ(tokenizer.separator(), 2);
}

TEST(Unigram, AddedTokensOfTheSettings) {
  const Tokenizer tokenizer = converted(
      "tokenizer.model", file_of("unigram.model"),
      R"({"added_tokens_decoder":{"200":{"content":"<extra_id_0>","special":true}},"add_bos_token":true})");
  EXPECT_EQ(tokenizer.encode("<extra_id_0>", {.add_special = false}), std::vector<int32_t>{200});
  EXPECT_EQ(tokenizer.encode("a").front(), 1);
  EXPECT_THROW(converted("tokenizer.model", file_of("unigram.model"),
                         R"({"added_tokens_decoder":{"x":{"content":"<y>"}}})"),
               Error);
}

TEST(Unigram, OtherRulesAreNamed) {
  const auto refusal = [](const json& of) -> std::string {
    try {
      converted("tokenizer.json", of.dump());
    } catch (const Error& error) {
      return error.what();
    }
    return "was converted";
  };
  json other = tokenizer_json();
  other["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_NE(refusal(other).find("Lowercase"), std::string::npos) << refusal(other);
  other = tokenizer_json();
  other["pre_tokenizer"] = {{"type", "ByteLevel"}};
  EXPECT_NE(refusal(other).find("Metaspace"), std::string::npos) << refusal(other);
  other = tokenizer_json();
  other["model"]["vocab"][5] = {"only a text"};
  EXPECT_NE(refusal(other).find("model.vocab[5]"), std::string::npos) << refusal(other);
  other = tokenizer_json();
  other["normalizer"]["normalizers"][0]["precompiled_charsmap"] = "a~b";
  EXPECT_NE(refusal(other).find("base64"), std::string::npos) << refusal(other);
}

// Errors, but never a crash, and never more text than the map's limit allows.
TEST(Unigram, HostileFiles) {
  const unsigned seed = test_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string good = file_of("unigram.model");
  const SentencePieceModel model = read_sentence_piece_model(good);
  for (int round = 0; round < 2000; ++round) {
    std::string bad = good;
    for (size_t n = 1 + random() % 4; n > 0; --n)
      bad[random() % bad.size()] = static_cast<char>(random());
    if (round % 3 == 0) bad.resize(random() % bad.size());
    try {
      read_sentence_piece_model(bad);
    } catch (const Error&) {
    }
  }
  TokenizerTables tables;
  tables.model = "t5";
  for (const SentencePieceModel::Piece& each : model.pieces) {
    tables.tokens.push_back(each.text);
    tables.scores.push_back(each.score);
    tables.types.push_back(each.type);
  }
  tables.unknown = model.unknown;
  const std::string text = "ｗａｌｋ ﬁne café… the ½ walker\t";
  for (int round = 0; round < 2000; ++round) {
    tables.character_map.assign(model.character_map.begin(), model.character_map.end());
    for (size_t n = 1 + random() % 64; n > 0; --n)
      tables.character_map[random() % tables.character_map.size()] = static_cast<uint8_t>(random());
    if (round % 4 == 0) tables.character_map.resize(random() % tables.character_map.size());
    EXPECT_LE(Tokenizer(tables).encode(text).size(), 257 * text.size() + 2);
  }
  EXPECT_THROW(read_sentence_piece_model(""), Error);
  EXPECT_THROW(read_sentence_piece_model("\xff"), Error);
}

}  // namespace
}  // namespace prism::llm
