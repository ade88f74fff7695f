// Writes a model anew with other types of its tensors, a few megabytes in memory at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "llm/gguf/quantise_mix.h"
#include "prism/llm/gguf.h"

namespace prism {
class ThreadPool;
}

namespace prism::llm {

struct QuantiseOptions {
  bool requantise = false;     // also from types of fewer than 8 bits, whose errors then add up
  ThreadPool* pool = nullptr;  // null: that of the CPU's kernels
  // Told before each tensor and after each piece.
  std::function<void(const std::string& tensor, uint64_t written_bytes, uint64_t all_bytes)>
      progress;
};

struct QuantiseResult {
  uint64_t input_bytes = 0, output_bytes = 0;  // of the tensors
  uint64_t tensors = 0, changed = 0;
};

// Metadata is copied, with the file's type set anew; a split file becomes one. Throws
// kInvalidArgument for quantised input without requantise and for weights that are not finite
// (naming tensor and element), kIo where the file cannot be written; then nothing is left.
QuantiseResult quantise_file(const GgufFile& file, const std::string& to, const QuantiseMix& mix,
                             const QuantiseOptions& options = {});

}  // namespace prism::llm
