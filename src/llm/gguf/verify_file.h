// Looks through a whole model file: structure, vocabulary, and every value of every tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"

namespace prism::llm {

struct VerifyResult {
  std::vector<std::string> problems;  // sentences; empty: nothing wrong was found
  std::vector<std::string> notes;     // what could not be looked at
  uint64_t tensors = 0, elements = 0;
};

// The file is open, so counts, offsets and sizes are right already. progress: told the bytes of
// tensors seen so far, of all.
VerifyResult verify_file(const GgufFile& file,
                         const std::function<void(uint64_t done, uint64_t all)>& progress = {});

}  // namespace prism::llm
