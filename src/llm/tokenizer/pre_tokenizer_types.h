// The table of pre-tokenizer types: names, regular expressions and traits.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "llm/tokenizer/pre_tokenizer.h"

namespace prism::llm {

struct PreType {
  std::vector<std::string_view> names;
  // Applied in order, each to the words of the previous one. Text between two matches is a word as
  // well.
  std::vector<std::string_view> patterns;
  PreTokenizerTraits traits;
};

const std::vector<PreType>& pre_types();

// The most common expressions, which have ASCII fast paths.
extern const std::string_view kGpt2Pattern, kLlama3Pattern, kQwen2Pattern;

}  // namespace prism::llm
