// A tokenizer of letters, digits and a space for the metadata of a model file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llm/gguf/gguf_writer.h"

namespace prism::test {

constexpr int32_t kFirstDigit = 30;  // the token of 0

// Returns the number of tokens.
inline int set_letters(llm::GgufWriter& file) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\u2581"};
  for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
  for (char c = '0'; c <= '9'; ++c) tokens.emplace_back(1, c);
  std::vector<int32_t> types(tokens.size(), 1);
  types[0] = 2, types[1] = types[2] = 3;  // unknown; control
  file.set("tokenizer.ggml.model", "llama");
  file.set("tokenizer.ggml.tokens", tokens);
  file.set("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1));
  file.set("tokenizer.ggml.token_type", types);
  file.set("tokenizer.ggml.bos_token_id", 1);
  file.set("tokenizer.ggml.eos_token_id", 2);
  file.set("tokenizer.ggml.unknown_token_id", 0);
  return static_cast<int>(tokens.size());
}

}  // namespace prism::test
