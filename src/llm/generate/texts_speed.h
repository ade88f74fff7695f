// The speed of several texts that are generated at once.
#pragma once

#include <cstdint>

#include "llm/model/model.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

inline constexpr int64_t kTextsPrompt = 16;  // tokens of each text's prompt

// Returns the seconds in which a scheduler decodes `tokens` tokens of each of `texts` texts, the
// best of `repeats`, without the prompts. Throws kInvalidArgument if the model has fewer slots, or
// if a context has no room for kTextsPrompt + tokens + 1.
double texts_seconds(Model& model, const Tokenizer& tokenizer, int64_t texts, int64_t tokens,
                     int repeats = 3);

}  // namespace prism::llm
