// Writes the vocabularies of ../shared/tokenizers as tokenizer.json files, converts them, and
// compares the tokens of texts; and hostile JSON files.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "llm/convert/convert_folder.h"
#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_tokenizer.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/tokenizer/pre_tokenizer_types.h"
#include "llm/tokenizer/text_encoder.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"
#include "support/models/hf_files.h"
#include "support/models/tokenizer_texts.h"
#include "support/paths.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

using json = nlohmann::json;
using test::HfTestFolder;

// The tokenizer that the converter makes of a folder with this tokenizer.json.
Tokenizer converted(const json& tokenizer, int64_t vocabulary, std::string* pre = nullptr) {
  const HfTestFolder folder(test::hf_model("llama"));
  folder.write("tokenizer.json", tokenizer.dump());
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  write_tokenizer(HfFolder::open(folder.path()), vocabulary, writer);
  writer.write(folder.path("out.gguf"));
  const GgufFile file = GgufFile::open(folder.path("out.gguf"));
  if (pre) *pre = file.string_or("tokenizer.ggml.pre", "");
  return Tokenizer::from(file);
}

std::string refusal(const json& tokenizer) {
  try {
    converted(tokenizer, 64);
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "was converted";
  return "";
}

GgufFile shared_vocabulary(const std::string& name) {
  return GgufFile::open((test::shared_dir() / "tokenizers" / (name + ".gguf")).string());
}

void expect_same_ids(const std::string& name, const Tokenizer& found) {
  const test::TokenizerTexts cases = test::tokenizer_texts(name);
  const EncodeOptions plain{.add_special = false, .parse_special = false};
  ASSERT_GT(cases.ids.size(), 40u);
  for (size_t i = 0; i < cases.ids.size(); ++i)
    EXPECT_EQ(found.encode(cases.texts[i], plain), cases.ids[i]) << name << ": " << cases.texts[i];
}

#define SKIP_WITHOUT(name)                                                        \
  if (!exists(test::shared_dir() / "tokenizers" / (std::string(name) + ".gguf"))) \
  GTEST_SKIP() << "no " << name << ".gguf in ../shared/tokenizers"

json vocabulary_of(const Tokenizer& from, json& added) {
  json tokens = json::object();
  for (size_t i = 0; i < from.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (from.type(id) == TokenType::control)
      added.push_back({{"id", i}, {"content", from.text(id)}, {"special", true}});
    tokens[std::string(from.text(id))] = i;
  }
  return tokens;
}

TEST(ConvertTokenizer, TokensThatTextsNeverHave) {
  const HfTestFolder folder(test::hf_model("llama"));
  const auto written = [&](const char* settings) {
    folder.write("generation_config.json", settings);
    GgufWriter to;
    to.set("general.architecture", "llama");
    write_tokenizer(HfFolder::open(folder.path()), 64, to);
    to.write(folder.path("out.gguf"));
    return Tokenizer::from(GgufFile::open(folder.path("out.gguf"))).suppressed();
  };
  EXPECT_EQ(written(R"({"suppress_tokens": [5, -1, 7, 64]})"), (std::vector<int32_t>{5, 7}));
  EXPECT_TRUE(written(R"({"suppress_tokens": null})").empty());
}

TEST(ConvertTokenizer, ByteLevelBpe) {
  SKIP_WITHOUT("gpt-2");
  const GgufFile file = shared_vocabulary("gpt-2");
  const Tokenizer from = Tokenizer::from(file);
  json added = json::array();
  json tokenizer;
  tokenizer["model"] = {{"type", "BPE"}, {"vocab", vocabulary_of(from, added)}};
  for (const std::string_view each : file.strings("tokenizer.ggml.merges"))
    tokenizer["model"]["merges"].push_back(each);
  tokenizer["added_tokens"] = added;
  tokenizer["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  std::string pre;
  const auto count = static_cast<int64_t>(from.size());
  expect_same_ids("gpt-2", converted(tokenizer, count, &pre));
  EXPECT_EQ(pre, "gpt-2");
}

// Merges as tokenizers makes them of SentencePiece models: every split of a token into two, in
// order of the token's score.
TEST(ConvertTokenizer, SentencePieceBpe) {
  SKIP_WITHOUT("llama-spm");
  const GgufFile file = shared_vocabulary("llama-spm");
  const Tokenizer from = Tokenizer::from(file);
  const std::vector<float> scores = file.floats("tokenizer.ggml.scores");
  std::vector<std::pair<float, json>> merges;
  for (size_t i = 0; i < from.size(); ++i) {
    const std::string_view text = from.text(static_cast<int32_t>(i));
    if (from.type(static_cast<int32_t>(i)) != TokenType::normal) continue;
    for (size_t at = 1; at < text.size(); ++at)
      if (from.find(text.substr(0, at)) >= 0 && from.find(text.substr(at)) >= 0)
        merges.emplace_back(scores[i], json::array({text.substr(0, at), text.substr(at)}));
  }
  std::ranges::stable_sort(merges, std::greater<>(), [](const auto& each) { return each.first; });
  json added = json::array();
  json tokenizer;
  tokenizer["model"] = {{"type", "BPE"},
                        {"byte_fallback", true},
                        {"unk_token", "<unk>"},
                        {"vocab", vocabulary_of(from, added)}};
  for (const auto& [score, pair] : merges) tokenizer["model"]["merges"].push_back(pair);
  tokenizer["added_tokens"] = added;
  tokenizer["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "Prepend"}, {"prepend", kSpaceMark}},
        {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}}}}};
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  const Tokenizer made = converted(tokenizer, static_cast<int64_t>(from.size()));
  expect_same_ids("llama-spm", made);
  EXPECT_TRUE(made.adds_bos());
  EXPECT_EQ(made.bos(), 1);
  EXPECT_FALSE(made.adds_eos());
}

// By tokenizer.json, and by vocab.txt alone.
TEST(ConvertTokenizer, WordPiece) {
  SKIP_WITHOUT("bert-bge");
  const Tokenizer from = Tokenizer::from(shared_vocabulary("bert-bge"));
  json tokens = json::object(), added = json::array();
  std::string lines;
  for (size_t i = 0; i < from.size(); ++i) {
    std::string text(from.text(static_cast<int32_t>(i)));
    const bool is_name = text.starts_with("[") && text.ends_with("]") && text.size() > 2;
    if (text.starts_with(kSpaceMark))
      text.erase(0, kSpaceMark.size());
    else if (!is_name)
      text.insert(0, "##");
    for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
      if (text == special) added.push_back({{"id", i}, {"content", text}, {"special", true}});
    tokens[text] = i;
    lines += text + "\n";
  }
  json tokenizer = json::parse(test::word_piece_tokenizer(64));
  tokenizer["model"]["vocab"] = tokens;
  tokenizer["added_tokens"] = added;
  const auto count = static_cast<int64_t>(from.size());
  const Tokenizer made = converted(tokenizer, count);
  expect_same_ids("bert-bge", made);
  EXPECT_EQ(made.encode("a"), from.encode("a"));

  const HfTestFolder folder(test::hf_model("llama"));
  folder.write("vocab.txt", lines);
  std::filesystem::remove(folder.path("tokenizer.json"));
  GgufWriter writer;
  write_tokenizer(HfFolder::open(folder.path()), count, writer);
  writer.write(folder.path("out.gguf"));
  expect_same_ids("bert-bge", Tokenizer::from(GgufFile::open(folder.path("out.gguf"))));
}

// Every pre-tokenizer of Prism's list is recognised by its expressions.
TEST(ConvertTokenizer, PreTokenizersAreRecognised) {
  for (const PreType& type : pre_types()) {
    if (type.traits.raw_text) continue;
    json tokenizer = json::parse(test::byte_level_tokenizer(64));
    json rules = json::array();
    for (const std::string_view pattern : type.patterns)
      rules.push_back({{"type", "Split"},
                       {"pattern", {{"Regex", pattern}}},
                       {"behavior", "Isolated"},
                       {"invert", false}});
    rules.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
    tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", rules}};
    tokenizer["model"]["ignore_merges"] = type.traits.ignore_merges;
    std::string pre;
    converted(tokenizer, 64, &pre);
    const auto named = std::ranges::find_if(
        pre_types(), [&](const PreType& each) { return each.names.front() == pre; });
    ASSERT_NE(named, pre_types().end()) << pre;
    EXPECT_EQ(named->patterns, type.patterns) << pre;
    EXPECT_EQ(named->traits.ignore_merges, type.traits.ignore_merges) << pre;
  }
  json digits = json::parse(test::byte_level_tokenizer(64));
  digits["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", true}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}}};
  std::string pre;
  converted(digits, 64, &pre);
  EXPECT_EQ(pre, "starcoder");  // the first of those with these expressions
}

TEST(ConvertTokenizer, UnknownPartsAreShown) {
  const auto with = [](const char* key, const json& value) {
    json tokenizer = json::parse(test::byte_level_tokenizer(64));
    tokenizer[json::json_pointer(key)] = value;
    return refusal(tokenizer);
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != text.npos;
  };
  EXPECT_TRUE(has(with("/model/type", "Unigram"), "Unigram"));
  EXPECT_TRUE(has(with("/normalizer", {{"type", "NFKC"}}), "NFKC"));
  EXPECT_TRUE(has(with("/post_processor", {{"type", "Odd"}}), "Odd"));
  EXPECT_TRUE(has(with("/model/merges", {"a b c"}), "a b c"));
  EXPECT_TRUE(
      has(with("/pre_tokenizer",
               {{"type", "Sequence"},
                {"pretokenizers",
                 {{{"type", "Split"}, {"pattern", {{"Regex", "[xyz]+"}}}, {"behavior", "Isolated"}},
                  {{"type", "ByteLevel"}, {"use_regex", false}}}}}),
          "[xyz]+"));
  EXPECT_TRUE(has(with("/model/vocab/odd", 64), "64"));
  EXPECT_TRUE(has(with("/model/vocab/odd", 5), "both have the id 5"));
  EXPECT_TRUE(has(with("/model/vocab/odd", -1), "-1"));
}

// Changed at random, a folder is converted or refused with an Error, and nothing else.
TEST(ConvertTokenizer, HostileFilesAreRefused) {
  const uint32_t seed = test_seed();
  std::mt19937 random(seed);
  SCOPED_TRACE(seed);
  int refused = 0;
  for (const char* name : {"llama", "bert", "phi3-long"}) {
    const HfTestFolder folder(test::hf_model(name));
    folder.write("tokenizer_config.json",
                 R"({"bos_token":"<s>","eos_token":{"content":"</s>"},"chat_template":"{{ x }}"})");
    for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
      const std::string whole = folder.read(file);
      for (int round = 0; round < 60; ++round) {
        std::string text = whole;
        for (int change = 0; change < 1 + round % 3; ++change) {
          const size_t at = random() % text.size();
          switch (random() % 5) {
            case 0:
              text[at] = static_cast<char>(random());
              break;
            case 1:
              text.erase(at, 1 + random() % 9);
              break;
            case 2:
              text.insert(at, std::to_string(static_cast<int64_t>(random()) << (random() % 33)));
              break;
            case 3:
              text.insert(at, "-");
              break;
            default:
              text.insert(at, text.substr(random() % text.size(), random() % 40));
          }
          if (text.empty()) text = " ";
        }
        folder.write(file, text);
        try {
          convert_folder(folder.path(), folder.path("out.gguf"));
        } catch (const Error&) {
          ++refused;
        }
      }
      folder.write(file, whole);
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace prism::llm
