// PLaMo's list of tokens: a line of JSON for each, with its text, its score and its kind.
#pragma once

#include <string_view>

#include "llm/convert/hf_vocabulary.h"

namespace prism::llm {

inline constexpr const char* kPlamoVocabulary = "tokenizer.jsonl";

// Adds the tokens, their scores and the kind of the tokenizer; settings: tokenizer_config.json.
// Throws kCorruptFile naming the line.
void write_plamo_vocabulary(std::string_view lines, const JsonView& settings,
                            HfVocabulary& vocabulary, GgufWriter& to);

}  // namespace prism::llm
