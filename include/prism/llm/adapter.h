// LoRA adapters: small files that change the weights of a model.
//
//   LanguageModel model = LanguageModel::load("model.gguf", {.adapters = {{"adapter.gguf", 0.5}}});
#pragma once

#include <string>

#pragma GCC visibility push(default)

namespace prism::llm {

// A GGUF file with general.type "adapter" and adapter.type "lora", as llama.cpp writes and reads
// them. The change that it makes is multiplied by the scale; 0 switches it off.
struct LoraAdapter {
  std::string path;
  double scale = 1;
};

// Reads "adapter.gguf:0.5"; without a number the scale is 1. Throws kInvalidArgument for a scale
// that is not a finite number.
LoraAdapter parse_adapter(const std::string& text);

}  // namespace prism::llm

#pragma GCC visibility pop
