// The options of a generation by the names of llama.cpp's server.
#pragma once

#include "base/json.h"
#include "prism/llm/generation.h"
#include "prism/llm/tokenizer.h"

namespace prism::server {

// As the decimal number that a person would write: 0.8, not 0.800000012.
double rounded(float value);

Json generation_settings(const llm::GenerationOptions& options, const llm::Tokenizer& tokenizer);

}  // namespace prism::server
