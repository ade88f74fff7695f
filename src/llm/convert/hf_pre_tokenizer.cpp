// Turns the rules of tokenizer.json files into lists of expressions and compares them with Prism's.
#include "llm/convert/hf_pre_tokenizer.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "llm/tokenizer/pre_tokenizer_types.h"
#include "llm/tokenizer/text_encoder.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

[[noreturn]] void refuse(const char* part, const JsonView& rule) {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("tokenizer.json: {} has {}, which cannot be converted", part,
                          printable(rule.json().dump().substr(0, 300))));
}

// A split that keeps both the matches and the text between them.
std::string split_pattern(const JsonView& rule) {
  const std::string behavior = rule["behavior"].string();
  const bool inverted = rule["invert"].boolean_or(false);
  if (!rule["pattern"]["Regex"] ||
      !((behavior == "Isolated" && !inverted) || (behavior == "Removed" && inverted)))
    refuse("pre_tokenizer", rule);
  return rule["pattern"]["Regex"].string();
}

std::vector<std::string> patterns_of(const JsonView& pre_tokenizer) {
  std::vector<std::string> patterns;
  for (const JsonView& rule : rules_of(pre_tokenizer, "pretokenizers")) {
    const std::string type = rule["type"].string();
    if (type == "Split") {
      patterns.push_back(split_pattern(rule));
    } else if (type == "Digits") {
      patterns.emplace_back(rule["individual_digits"].boolean_or(false) ? R"(\p{N})" : R"(\p{N}+)");
    } else if (type == "ByteLevel") {
      if (rule["add_prefix_space"].boolean_or(false)) refuse("pre_tokenizer", rule);
      if (rule["use_regex"].boolean_or(true)) patterns.emplace_back(kGpt2Pattern);
    } else {
      refuse("pre_tokenizer", rule);
    }
  }
  return patterns;
}

}  // namespace

std::vector<JsonView> rules_of(const JsonView& part, const char* list) {
  if (!part) return {};
  if (part["type"].string() != "Sequence") return {part};
  std::vector<JsonView> all;
  for (const JsonView& each : part[list].items())
    for (const JsonView& inner : rules_of(each, list)) all.push_back(inner);
  return all;
}

bool has_byte_level(const JsonView& pre_tokenizer) {
  return std::ranges::any_of(rules_of(pre_tokenizer, "pretokenizers"), [](const JsonView& rule) {
    return rule["type"].string() == "ByteLevel";
  });
}

std::string_view byte_level_type(const JsonView& pre_tokenizer, bool ignores_merges) {
  const std::vector<std::string> found = patterns_of(pre_tokenizer);
  for (const PreType& type : pre_types())
    if (!type.traits.raw_text && type.traits.ignore_merges == ignores_merges &&
        std::ranges::equal(found, type.patterns))
      return type.names.front();
  std::string shown;
  for (const std::string& each : found) shown += (shown.empty() ? "" : "  then  ") + each;
  throw Error(
      ErrorCode::kNotSupported,
      fmt::format("tokenizer.json: pre_tokenizer splits texts by {}{}; no pre-tokenizer of "
                  "GGUF files does",
                  printable(shown.substr(0, 600)), ignores_merges ? " and ignores merges" : ""));
}

bool is_composition(const JsonView& normalizer) {
  return std::ranges::all_of(rules_of(normalizer, "normalizers"),
                             [](const JsonView& rule) { return rule["type"].string() == "NFC"; });
}

bool sentence_space_prefix(const JsonView& normalizer, const JsonView& pre_tokenizer) {
  bool prefix = false;
  for (const JsonView& rule : rules_of(normalizer, "normalizers")) {
    const std::string type = rule["type"].string();
    const bool is_space_mark = type == "Replace" &&
                               rule["pattern"]["String"].string_or("") == " " &&
                               rule["content"].string_or("") == kSpaceMark;
    const bool is_prefix = type == "Prepend" && rule["prepend"].string_or("") == kSpaceMark;
    if (!is_space_mark && !is_prefix) refuse("normalizer", rule);
    prefix = prefix || is_prefix;
  }
  for (const JsonView& rule : rules_of(pre_tokenizer, "pretokenizers")) {
    const std::string type = rule["type"].string();
    // After the normalizer there are no spaces that this rule could split at.
    const bool is_idle = type == "Split" && rule["pattern"]["String"].string_or("") == " ";
    if (type != "Metaspace" && !is_idle) refuse("pre_tokenizer", rule);
    if (type == "Metaspace")
      prefix = rule["prepend_scheme"].string_or(
                   rule["add_prefix_space"].boolean_or(true) ? "always" : "never") != "never";
  }
  return prefix;
}

}  // namespace prism::llm
