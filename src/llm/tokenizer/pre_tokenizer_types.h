// The table of pre-types: their names, regular expressions and traits.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "llm/tokenizer/pre_tokenizer.h"

namespace prism::llm {

struct PreType {
  std::vector<std::string_view> names;
  // Applied in order, each to the words that the one before has made; what lies between two matches
  // is a word as well.
  std::vector<std::string_view> patterns;
  PreTokenizerTraits traits;
};

const std::vector<PreType>& pre_types();

// The expressions that are by far the commonest: they have a short way for plain ASCII.
extern const std::string_view kGpt2Pattern, kLlama3Pattern, kQwen2Pattern;

}  // namespace prism::llm
