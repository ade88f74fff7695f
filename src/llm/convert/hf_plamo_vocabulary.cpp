// Reads the lines of tokenizer.jsonl and the settings that belong to them.
#include "llm/convert/hf_plamo_vocabulary.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/printable.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

// Below the scores that PLaMo's tokenizer considers: no text has these tokens.
constexpr float kUnusedScore = -10000;
// Those of the published tokenizer are logarithms above -100.
constexpr double kMostScore = 1e5;

TokenType type_of(const std::string& text, const std::string& kind) {
  if (kind == "UNKNOWN") return TokenType::unknown;
  if (kind == "BYTE") return TokenType::byte;
  const bool is_control = text.starts_with("<|plamo:") && text.ends_with("|>");
  return kind == "CONTROL" || is_control ? TokenType::control : TokenType::normal;
}

// ["text", score, "KIND", ...]; returns the score.
float add_line(std::string_view line, int64_t id, HfVocabulary& vocabulary) {
  try {
    const Json json = Json::parse(line);
    const std::vector<JsonView> parts = JsonView(json).items();
    if (parts.size() < 2) JsonView(json).fail("is no list of a text and a score");
    const std::string& text = parts[0].string();
    // The published tokenizer rounds to this, from more digits than a file has.
    const double score = std::nearbyint(parts[1].number(-kMostScore, kMostScore) * 1e4) / 1e4;
    vocabulary.add(text, id);
    vocabulary.set_type(id, type_of(text, parts.size() > 2 ? parts[2].string() : "NORMAL"));
    return static_cast<float>(score);
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: line {}, \"{}\", is not [text, score, kind]: {}", kPlamoVocabulary,
                            id + 1, printable(line.substr(0, 200)), error.what()));
  }
}

}  // namespace

void write_plamo_vocabulary(std::string_view lines, const JsonView& settings,
                            HfVocabulary& vocabulary, GgufWriter& to) {
  std::vector<float> scores(static_cast<size_t>(vocabulary.size()), kUnusedScore);
  int64_t id = 0;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string_view line = lines.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const float score = add_line(line, id, vocabulary);
    scores[static_cast<size_t>(id++)] = score;
  }
  to.set("tokenizer.ggml.model", "plamo2");
  to.set("tokenizer.ggml.pre", "default");
  to.set("tokenizer.ggml.scores", scores);
  to.set("tokenizer.ggml.add_space_prefix", false);
  for (const char* key : {"add_bos_token", "add_eos_token"})
    if (const JsonView value = settings[key])
      to.set(fmt::format("tokenizer.ggml.{}", key), value.boolean());
  // PLaMo 3 cuts texts around long runs of one character.
  for (const char* key : {"repeated_chars", "consecutive_spaces"})
    if (const JsonView value = settings[fmt::format("break_around_{}_threshold", key)])
      to.set(fmt::format("tokenizer.ggml.break_around_{}", key),
             static_cast<uint32_t>(value.integer(1, INT32_MAX)));
  // Turns of chats begin with this token.
  if (const auto turn = vocabulary.find("<|plamo:op|>"))
    to.set("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(*turn));
}

}  // namespace prism::llm
