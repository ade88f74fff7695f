// The options of a generation by the names of llama.cpp's server.
#pragma once

#include "base/json.h"
#include "prism/llm/generation.h"
#include "prism/llm/tokenizer.h"

namespace prism::server {

Json generation_settings(const llm::GenerationOptions& options, const llm::Tokenizer& tokenizer);

}  // namespace prism::server
