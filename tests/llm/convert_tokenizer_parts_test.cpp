// Converts folders whose tokenizer is in other files than tokenizer.json: tiktoken's ranks,
// vocab.json with merges.txt, PLaMo's tokenizer.jsonl, and the SentencePiece file of ChatGLM.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_tokenizer.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/tokenizer/byte_alphabet.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"
#include "support/models/hf_files.h"
#include "support/models/tokenizer_texts.h"
#include "support/paths.h"

namespace prism::llm {
namespace {

using json = nlohmann::json;
using test::HfTestFolder;
using Files = std::map<std::string, std::string>;

// The file that the converter makes of a folder with these files and no tokenizer.json; config.json
// names no tokens.
GgufFile converted(const HfTestFolder& folder, const Files& files, int64_t vocabulary) {
  std::filesystem::remove(folder.path("tokenizer.json"));
  for (const auto& [name, content] : files) folder.write(name, content);
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  write_tokenizer(HfFolder::open(folder.path()), vocabulary, writer);
  writer.write(folder.path("out.gguf"));
  return GgufFile::open(folder.path("out.gguf"));
}

std::string refusal(const Files& files, ErrorCode code) {
  try {
    converted(HfTestFolder(test::hf_model("openelm")), files, 64);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "was converted";
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t at) {
      return at < bytes.size() ? static_cast<uint32_t>(static_cast<unsigned char>(bytes[at])) : 0u;
    };
    const uint32_t bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

// The bytes of a token that is written in GPT-2's alphabet.
std::string bytes_of(std::string_view text) {
  const ByteAlphabet& alphabet = byte_alphabet();
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const size_t length = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : 2;
    for (size_t byte = 0; byte < 256; ++byte)
      if (alphabet.characters[byte] == text.substr(at, length))
        bytes.push_back(static_cast<char>(byte));
    at += length;
  }
  return bytes;
}

// A list of ranks with all bytes and then these tokens.
std::string ranks_with(const std::vector<std::string>& tokens) {
  std::string lines;
  int64_t rank = 0;
  for (int byte = 0; byte < 256; ++byte)
    lines += base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(rank++) + "\n";
  for (const std::string& each : tokens)
    lines += base64(each) + " " + std::to_string(rank++) + "\n";
  return lines;
}

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

// The ids of GPT-2's tokens are their ranks, so its merges are the ones that the ranks lead to.
TEST(ConvertTokenizerParts, RanksGiveMerges) {
  const std::string path = (test::shared_dir() / "tokenizers" / "gpt-2.gguf").string();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no gpt-2.gguf in ../shared/tokenizers";
  const GgufFile from = GgufFile::open(path);
  std::string lines;
  const std::vector<std::string_view> tokens = from.strings("tokenizer.ggml.tokens");
  for (size_t id = 0; id + 1 < tokens.size(); ++id)  // without <|endoftext|>
    lines += base64(bytes_of(tokens[id])) + " " + std::to_string(id) + "\n";
  const HfTestFolder folder(test::hf_model("openelm"));
  const GgufFile file = converted(folder, {{"qwen.tiktoken", lines}}, 51000);
  EXPECT_EQ(file.strings("tokenizer.ggml.merges"), from.strings("tokenizer.ggml.merges"));
  EXPECT_EQ(file.string("tokenizer.ggml.pre"), "qwen2");
  const Tokenizer made = Tokenizer::from(file);
  EXPECT_EQ(made.find("<|endoftext|>"), 50256);
  EXPECT_EQ(made.find("<|im_end|>"), 50258);
  EXPECT_EQ(made.find("<|extra_204|>"), 50463);
  EXPECT_EQ(made.type(50463), TokenType::control);
  EXPECT_EQ(made.eos(), 50256);
  EXPECT_FALSE(made.adds_bos());
}

TEST(ConvertTokenizerParts, VocabularyAndMerges) {
  const std::string path = (test::shared_dir() / "tokenizers" / "gpt-2.gguf").string();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no gpt-2.gguf in ../shared/tokenizers";
  const GgufFile from = GgufFile::open(path);
  json vocabulary = json::object();
  int64_t id = 0;
  for (const std::string_view each : from.strings("tokenizer.ggml.tokens"))
    vocabulary[std::string(each)] = id++;
  std::string merges = "#version: 0.2\n";
  for (const std::string_view each : from.strings("tokenizer.ggml.merges"))
    merges += std::string(each) + "\n";
  const HfTestFolder folder(test::hf_model("openelm"));
  const Tokenizer made = Tokenizer::from(
      converted(folder, {{"vocab.json", vocabulary.dump()}, {"merges.txt", merges}}, id));
  const test::TokenizerTexts cases = test::tokenizer_texts("gpt-2");
  for (size_t i = 0; i < cases.ids.size(); ++i)
    EXPECT_EQ(made.encode(cases.texts[i], kPlain), cases.ids[i]) << cases.texts[i];
  EXPECT_EQ(made.type(50256), TokenType::control);
  EXPECT_EQ(made.eos(), 50256);
}

// tiktoken takes a word that is a token as it is, even if no merges lead to it.
TEST(ConvertTokenizerParts, WordsThatAreTokensNeedNoMerges) {
  const json settings = {{"tokenizer_class", "ChatGLM4Tokenizer"},
                         {"added_tokens_decoder",
                          {{"259", {{"content", "<|endoftext|>"}, {"special", true}}},
                           {"260", {{"content", "<|user|>"}, {"special", true}}}}}};
  const HfTestFolder folder(test::hf_model("openelm"));
  const Files files = {{"tokenizer.model", ranks_with({"ab", "abc", "xyz"})},
                       {"tokenizer_config.json", settings.dump()}};
  const Tokenizer made = Tokenizer::from(converted(folder, files, 262));
  EXPECT_EQ(made.encode("xyz", kPlain), (std::vector<int32_t>{258}));
  EXPECT_EQ(made.encode("abc", kPlain), (std::vector<int32_t>{257}));
  EXPECT_EQ(made.encode("abcxyz", kPlain), (std::vector<int32_t>{257, 'x', 'y', 'z'}));
  EXPECT_EQ(made.encode("<|user|>", {.add_special = true, .parse_special = true}),
            (std::vector<int32_t>{260}));
  EXPECT_EQ(made.eos(), 259);
}

TEST(ConvertTokenizerParts, UnknownFilesAreNamed) {
  const std::string ranks = ranks_with({});
  EXPECT_TRUE(has(refusal({{"tokenizer.model", ranks}}, ErrorCode::kNotSupported),
                  "ChatGLM4Tokenizer alone"));
  EXPECT_TRUE(has(refusal({{"qwen.tiktoken", ranks + "IQ== x\n"}}, ErrorCode::kCorruptFile),
                  "line 257 is \"IQ== x\""));
  EXPECT_TRUE(
      has(refusal({{"qwen.tiktoken", ranks + "IQ== 300\n"}}, ErrorCode::kCorruptFile), "line 257"));
  EXPECT_TRUE(has(
      refusal({{"qwen.tiktoken", ranks_with({std::string(257, 'a')})}}, ErrorCode::kCorruptFile),
      "at most 256 bytes"));
  const std::string config = R"({"tokenizer_class": "RobertaTokenizerFast"})";
  EXPECT_TRUE(
      has(refusal({{"vocab.json", "{}"}, {"merges.txt", ""}, {"tokenizer_config.json", config}},
                  ErrorCode::kNotSupported),
          "RobertaTokenizer"));
}

// The lines of PLaMo's vocabulary: special tokens, all bytes, then these.
std::string plamo_lines(const std::string& pieces) {
  std::string lines = R"(["<|plamo:unk|>", 0.0, "UNKNOWN", 1, null, 0, "x"]
["<|plamo:bos|>", 0.0, "CONTROL"]
["<|plamo:eos|>", 0.0, "CONTROL"]
["<|plamo:pad|>", 0.0, "CONTROL"]
["<|plamo:op|>", 0.0, "NORMAL"]
)";
  for (int byte = 0; byte < 256; ++byte)
    lines += fmt::format("[\"<0x{:02X}>\", 0, \"BYTE\"]\n", byte);
  return lines + pieces;
}

TEST(ConvertTokenizerParts, PlamosLinesGiveScores) {
  const Files files = {{"tokenizer.jsonl", plamo_lines(R"(["a", -2.0, "NORMAL"]

["b", -2.5]
["ab", -4.00004999, "NORMAL"]
["\n日本", -6, "NORMAL"]
)")},
                       {"tokenizer_config.json", R"({
    "bos_token": "<|plamo:bos|>", "eos_token": "<|plamo:eos|>", "unk_token": "<|plamo:unk|>",
    "pad_token": {"content": "<|plamo:pad|>"}, "add_bos_token": true, "add_eos_token": false,
    "added_tokens_decoder": {"0": {"content": "<|plamo:unk|>", "special": true},
                             "265": {"content": "<tool>", "special": true}}})"}};
  const HfTestFolder folder(test::hf_model("openelm"));
  const GgufFile file = converted(folder, files, 268);
  EXPECT_EQ(file.string("tokenizer.ggml.model"), "plamo2");
  EXPECT_EQ(file.string("tokenizer.ggml.pre"), "default");
  EXPECT_FALSE(file.boolean("tokenizer.ggml.add_space_prefix"));
  EXPECT_FALSE(file.has("tokenizer.ggml.break_around_repeated_chars"));
  EXPECT_EQ(file.integer("tokenizer.ggml.padding_token_id"), 3);
  EXPECT_EQ(file.floats("tokenizer.ggml.scores")[263], -4.f);
  const Tokenizer made = Tokenizer::from(file);
  EXPECT_EQ(made.encode("ab\n日本<tool>é"), (std::vector<int32_t>{1, 263, 264, 265, 200, 174}));
  EXPECT_EQ(made.type(0), TokenType::unknown);
  EXPECT_EQ(made.type(4), TokenType::control);
  EXPECT_EQ(made.type(5 + 'a'), TokenType::byte);
  EXPECT_EQ(made.type(267), TokenType::unused);
  EXPECT_EQ(made.unknown(), 0);
  EXPECT_EQ(made.eos(), 2);
  EXPECT_EQ(made.eot(), 4);
  EXPECT_TRUE(made.adds_bos());
  EXPECT_FALSE(made.adds_eos());
}

TEST(ConvertTokenizerParts, Plamo3KeepsWhereItCuts) {
  const Files files = {{"tokenizer.jsonl", plamo_lines("[\"a\", -2]\n[\"b\", -2]\n[\"ab\", -1]\n")},
                       {"tokenizer_config.json", R"({"break_around_repeated_chars_threshold": 3,
                                    "break_around_consecutive_spaces_threshold": null})"}};
  const HfTestFolder folder(test::hf_model("openelm"));
  const Tokenizer made = Tokenizer::from(converted(folder, files, 264));
  EXPECT_EQ(made.encode("aab"), (std::vector<int32_t>{261, 263}));
  EXPECT_EQ(made.encode("aaab"), (std::vector<int32_t>{261, 261, 261, 262}));
}

TEST(ConvertTokenizerParts, LinesThatAreNoTokensAreNamed) {
  const auto said = [](const std::string& line) {
    return refusal({{"tokenizer.jsonl", "[\"a\", -2]\n" + line + "\n"}}, ErrorCode::kCorruptFile);
  };
  EXPECT_TRUE(has(said("[\"b\"]"), "line 2, \"[\"b\"]\", is not [text, score, kind]"));
  EXPECT_TRUE(has(said("[\"b\", -1"), "line 2"));
  EXPECT_TRUE(has(said("[\"b\", NaN]"), "line 2"));
  EXPECT_TRUE(has(said("[\"b\", -1e300]"), "line 2"));
  EXPECT_TRUE(has(said("[\"a\", -1]"), "has the ids 0 and 1"));
  std::string many;
  for (int i = 0; i < 64; ++i) many += fmt::format("[\"t{}\", -1]\n", i);
  EXPECT_TRUE(has(said(many), "the embedding has 64 rows"));
}

// ChatGLM's code adds tokens behind the pieces of its file.
TEST(ConvertTokenizerParts, ChatGlmHasTokensBehindItsPieces) {
  const auto piece = [](const std::string& text, char type) {
    std::string message = "\x0a" + std::string(1, static_cast<char>(text.size())) + text + "\x18";
    message += type;
    return "\x0a" + std::string(1, static_cast<char>(message.size())) + message;
  };
  const std::string model = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("a", 1) +
                            std::string("\x12\x02\x18\x02");  // BPE
  const HfTestFolder folder(test::hf_model("openelm"));
  const Files files = {{"tokenizer.model", model},
                       {"tokenizer_config.json", R"({"tokenizer_class": "ChatGLMTokenizer"})"}};
  const Tokenizer made = Tokenizer::from(converted(folder, files, 16));
  EXPECT_EQ(made.find("[gMASK]"), 5);
  EXPECT_EQ(made.find("sop"), 7);
  EXPECT_EQ(made.find("<|observation|>"), 12);
  EXPECT_EQ(made.type(12), TokenType::control);
  EXPECT_FALSE(made.adds_bos());
}

}  // namespace
}  // namespace prism::llm
