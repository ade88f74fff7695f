// Verifies the contents of a GGUF file: the vocabulary, and every value of every tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"

namespace prism::llm {

struct VerifyResult {
  std::vector<std::string> problems;  // sentences; empty: no problem found
  std::vector<std::string> notes;     // parts that could not be checked
  uint64_t tensors = 0, elements = 0;
};

// The file is open, so its counts, offsets and sizes are already valid. progress: bytes of tensors
// checked so far, and their total.
VerifyResult verify_file(const GgufFile& file,
                         const std::function<void(uint64_t done, uint64_t all)>& progress = {});

}  // namespace prism::llm
