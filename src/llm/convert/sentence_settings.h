// The settings of sentence-transformers in a Hugging Face folder: how rows become one embedding or
// score.
#pragma once

#include <cstdint>
#include <optional>

#include "llm/convert/hf_folder.h"

namespace prism::llm {

// Tokens whose logits decide: a decoder that ranks answers with one of them.
struct Answers {
  int64_t yes = 0, no = 0;
};

struct SentenceSettings {
  std::optional<Answers> answers;
  std::optional<uint32_t> pooling;    // as in GGUF: 1 mean, 2 first, 3 last
  std::optional<int64_t> max_tokens;  // longer texts were cut in training
};

// Reads modules.json, the pooling's config.json and sentence_bert_config.json, where they are.
// Throws kNotSupported naming a module or pooling that Prism does not have.
SentenceSettings sentence_settings(const HfFolder& folder);

}  // namespace prism::llm
