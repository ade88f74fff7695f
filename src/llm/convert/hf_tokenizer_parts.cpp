// Makes tokenizer.json of the files that older and other classes of tokenizers have.
#include "llm/convert/hf_tokenizer_parts.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/printable.h"
#include "llm/tokenizer/byte_alphabet.h"
#include "llm/tokenizer/pre_tokenizer_types.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

constexpr JsonLimits kLimits{.bytes = size_t{256} << 20, .values = size_t{16} << 20};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

Json added_token(const std::string& text, int64_t id, bool is_special = true) {
  return Json{{"id", id}, {"content", text}, {"special", is_special}};
}

// --- vocab.txt
// One token on each line, in order.
Json word_piece_json(const HfFolder& folder, const std::string& lines) {
  Json added = Json::array();
  int64_t id = 0;
  std::string text = "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{";
  for (size_t at = 0; at < lines.size(); ++id) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    std::string token = lines.substr(at, end - at);
    if (token.ends_with('\r')) token.pop_back();
    text += fmt::format("{}{}:{}", id > 0 ? "," : "", Json(token).dump(), id);
    for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
      if (token == special)
        added.push_back(Json{{"id", id}, {"content", token}, {"special", true}});
    at = end + 1;
  }
  text += "}}}";
  Json json = Json::parse(text, {.bytes = size_t{256} << 20, .values = size_t{16} << 20});
  json["added_tokens"] = added;
  const std::optional<Json> config = folder.json("tokenizer_config.json");
  const JsonView settings = config ? JsonView(*config) : JsonView(json)["absent"];
  json["normalizer"] =
      Json{{"type", "BertNormalizer"}, {"lowercase", settings["do_lower_case"].boolean_or(true)}};
  json["post_processor"] = Json{{"type", "BertProcessing"},
                                {"sep", std::vector<std::string>{"[SEP]"}},
                                {"cls", std::vector<std::string>{"[CLS]"}}};
  return json;
}

// --- tiktoken: a token in base64 and its rank on each line
using Ranks = std::unordered_map<std::string, int64_t>;

// The longest tokens of published lists have 128 bytes; the work for one grows with its square.
constexpr size_t kMostTokenBytes = 256;

// The token and the rank of a line; nothing if it is not of that format.
std::optional<std::pair<std::string, int64_t>> rank_of(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos || space == 0) return std::nullopt;
  const auto token = from_base64(line.substr(0, space));
  int64_t rank = -1;
  const char* const end = line.data() + line.size();
  const auto [stop, failed] = std::from_chars(line.data() + space + 1, end, rank);
  if (!token || token->empty() || token->size() > kMostTokenBytes || failed != std::errc() ||
      stop != end || rank < 0)
    return std::nullopt;
  return std::pair(*token, rank);
}

Ranks ranks_of(const char* file, std::string_view text) {
  Ranks ranks;
  int64_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (line.empty()) continue;
    const auto found = rank_of(line);
    if (!found || !ranks.insert(*found).second)
      throw Error(
          ErrorCode::kCorruptFile,
          fmt::format(
              "{}: line {} is \"{}\"; a new token of at most {} bytes in base64 and its rank are "
              "needed",
              file, number, printable(std::string(line.substr(0, 80))), kMostTokenBytes));
  }
  return ranks;
}

// The parts of a token that merges of lower ranks make; two, unless merges do not lead to it.
std::vector<std::string> parts_of(const std::string& token, int64_t own, const Ranks& ranks) {
  std::vector<std::string> parts;
  for (const char byte : token) parts.emplace_back(1, byte);
  for (;;) {
    int64_t best = own;
    size_t place = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto found = ranks.find(parts[i] + parts[i + 1]);
          found != ranks.end() && found->second < best) {
        best = found->second;
        place = i;
      }
    if (best == own) return parts;
    parts[place] += parts[place + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

// The part of tokenizer.json that follows from the ranks.
Json tiktoken_json(const Ranks& ranks, std::string_view pattern) {
  std::vector<std::pair<int64_t, std::string>> in_order;
  for (const auto& [token, rank] : ranks) in_order.emplace_back(rank, token);
  std::ranges::sort(in_order);
  const ByteAlphabet& alphabet = byte_alphabet();
  Json merges = Json::array();
  // tiktoken takes a whole word that is a token as it is, whether or not merges lead to it.
  bool ignores_merges = false;
  std::string vocabulary;
  for (const auto& [rank, token] : in_order) {
    vocabulary += fmt::format("{}{}:{}", vocabulary.empty() ? "" : ",",
                              Json(alphabet.spell(token)).dump(), rank);
    if (token.size() == 1) continue;
    const std::vector<std::string> parts = parts_of(token, rank, ranks);
    if (parts.size() == 2)
      merges.push_back(Json(alphabet.spell(parts[0]) + " " + alphabet.spell(parts[1])));
    else
      ignores_merges = true;
  }
  Json json = Json::parse(
      R"({"model":{"type":"BPE","vocab":{)" + vocabulary + R"(}},"end_of_text":"<|endoftext|>"})",
      kLimits);
  json["model"]["merges"] = merges;
  json["model"]["ignore_merges"] = ignores_merges;
  Json split{{"type", "Split"}, {"behavior", "Isolated"}};
  split["pattern"] = Json{{"Regex", std::string(pattern)}};
  json["pre_tokenizer"] = Json{{"type", "Sequence"}};
  json["pre_tokenizer"]["pretokenizers"] = Json::array();
  json["pre_tokenizer"]["pretokenizers"].push_back(split);
  json["pre_tokenizer"]["pretokenizers"].push_back(
      Json{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  return json;
}

// Qwen's code counts these behind the ranks.
Json qwen_json(std::string_view text) {
  const Ranks ranks = ranks_of("qwen.tiktoken", text);
  Json json = tiktoken_json(ranks, kQwen2Pattern);
  Json added = Json::array();
  int64_t id = 0;
  for (const auto& [token, rank] : ranks) id = std::max(id, rank + 1);
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
    added.push_back(added_token(name, id++));
  constexpr int kExtra = 205;
  for (int i = 0; i < kExtra; ++i)
    added.push_back(added_token(fmt::format("<|extra_{}|>", i), id++));
  json["added_tokens"] = added;
  return json;
}

// The added tokens of tokenizer_config.json, where an id is the name of a member.
Json added_tokens_of(const JsonView& settings) {
  Json added = Json::array();
  for (const auto& [id, token] : settings["added_tokens_decoder"].members()) {
    int64_t number = -1;
    std::from_chars(id.data(), id.data() + id.size(), number);
    if (number < 0) token.fail("has a name that is no id");
    added.push_back(
        added_token(token["content"].string(), number, token["special"].boolean_or(false)));
  }
  return added;
}

// A tokenizer.model that is no file of SentencePiece.
std::optional<Json> tiktoken_model_json(const HfFolder& folder, const JsonView& settings) {
  const auto text = folder.text("tokenizer.model");
  if (!text || !rank_of(std::string_view(*text).substr(0, text->find('\n')))) return std::nullopt;
  const std::string name = settings["tokenizer_class"].string_or("");
  if (name != "ChatGLM4Tokenizer")
    throw Error(ErrorCode::kNotSupported,
                fmt::format("tokenizer_config.json: tokenizer_class is \"{}\", and tokenizer.model "
                            "has tiktoken's format; the expression that splits texts is known for "
                            "ChatGLM4Tokenizer alone, so a tokenizer.json is needed",
                            printable(name)));
  Json json = tiktoken_json(ranks_of("tokenizer.model", *text), kLlama3Pattern);
  json["added_tokens"] = added_tokens_of(settings);
  return json;
}

// --- vocab.json and merges.txt
Json pre_tokenizer_of(const std::string& name, const JsonView& settings) {
  const bool has_prefix = settings["add_prefix_space"].boolean_or(false);
  if (name.empty() || name == "GPT2Tokenizer" || name == "CodeGenTokenizer")
    return Json{{"type", "ByteLevel"}, {"add_prefix_space", has_prefix}};
  if (name != "Qwen2Tokenizer")
    throw Error(ErrorCode::kNotSupported,
                fmt::format("tokenizer_config.json: tokenizer_class is \"{}\"; with vocab.json and "
                            "merges.txt GPT2Tokenizer, CodeGenTokenizer and Qwen2Tokenizer are "
                            "known, so a tokenizer.json is needed",
                            printable(name)));
  return tiktoken_json({}, kQwen2Pattern)["pre_tokenizer"];
}

// Special tokens are those that the files name and the vocabulary has.
Json special_tokens_of(const HfFolder& folder, const JsonView& settings,
                       const JsonView& vocabulary) {
  Json added = added_tokens_of(settings);
  const auto add = [&](const JsonView& token) {
    if (!token) return;
    const std::string text = token.is_object() ? token["content"].string() : token.string();
    if (const JsonView id = vocabulary[text]) added.push_back(added_token(text, id.integer(0)));
  };
  std::vector<Json> files;
  for (const char* file : {"special_tokens_map.json", "tokenizer_config.json"})
    if (std::optional<Json> json = folder.json(file)) files.push_back(std::move(*json));
  for (const Json& file : files)
    for (const char* role : {"bos_token", "eos_token", "unk_token", "pad_token"})
      add(JsonView(file)[role]);
  const Json end("<|endoftext|>");
  add(JsonView(end));
  if (const auto more = folder.json("added_tokens.json"))
    for (const auto& [text, id] : JsonView(*more).members())
      added.push_back(added_token(text, id.integer(0), false));
  return added;
}

std::optional<Json> merges_json(const HfFolder& folder, const JsonView& settings) {
  const std::optional<Json> vocabulary = folder.json("vocab.json");
  const std::optional<std::string> text = folder.text("merges.txt");
  if (!vocabulary || !text) return std::nullopt;
  std::string name = settings["tokenizer_class"].string_or("");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  Json merges = Json::array();
  for (const std::string_view line : lines_of(*text))
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(Json(std::string(line)));
  Json json{{"end_of_text", "<|endoftext|>"}};
  json["model"] = Json{{"type", "BPE"}};
  json["model"]["vocab"] = *vocabulary;
  json["model"]["merges"] = merges;
  json["pre_tokenizer"] = pre_tokenizer_of(name, settings);
  json["added_tokens"] = special_tokens_of(folder, settings, JsonView(*vocabulary));
  return json;
}

}  // namespace

std::optional<Json> tokenizer_json_of_parts(const HfFolder& folder) {
  if (const auto lines = folder.text("vocab.txt")) return word_piece_json(folder, *lines);
  if (const auto text = folder.text("qwen.tiktoken")) return qwen_json(*text);
  const Json config = folder.json("tokenizer_config.json").value_or(Json::object());
  if (auto json = tiktoken_model_json(folder, JsonView(config))) return json;
  // Where both are there, SentencePiece's file is the whole tokenizer.
  if (folder.text("tokenizer.model")) return std::nullopt;
  return merges_json(folder, JsonView(config));
}

}  // namespace prism::llm
