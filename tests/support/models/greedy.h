// Generation options for greedy decoding.
#pragma once

#include <cstdint>

#include "prism/llm/generation.h"

namespace prism::test {

inline llm::GenerationOptions greedy(int64_t tokens) {
  llm::GenerationOptions options;
  options.sampler.temperature = 0;
  options.max_tokens = tokens;
  return options;
}

}  // namespace prism::test
