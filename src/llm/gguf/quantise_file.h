// Rewrites a model file with other tensor types, using a few megabytes of memory at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "llm/gguf/importance.h"
#include "llm/gguf/quantise_mix.h"
#include "llm/gguf/tensor_type_rules.h"
#include "prism/llm/gguf.h"

namespace prism {
class ThreadPool;
}

namespace prism::llm {

struct QuantiseOptions {
  bool requantise = false;                 // allow input types below 8 bits, whose errors add up
  ThreadPool* pool = nullptr;              // null: the pool of the CPU kernels
  std::vector<TensorTypeRule> types = {};  // for tensors by name, before those of the mix
  const ImportanceMatrix* importance = nullptr;  // null: all columns count alike
  std::string importance_file = {};              // its name, for the metadata
  // Changes of weights before they are encoded: whether a tensor has one, and the change of whole
  // rows. A tensor with a change is encoded again even if its type stays.
  std::function<bool(const std::string& tensor)> has_change = {};
  std::function<void(const GgufTensor& tensor, uint64_t first_row, std::span<float> values)>
      change = {};
  // Called before each tensor and after each piece.
  std::function<void(const std::string& tensor, uint64_t written_bytes, uint64_t all_bytes)>
      progress = {};
};

struct QuantiseResult {
  uint64_t input_bytes = 0, output_bytes = 0;  // tensors only
  uint64_t tensors = 0, changed = 0;
  uint64_t weighted = 0;  // tensors that were written with an importance of their columns
};

// Copies the metadata with a new general.file_type; a split file becomes one file. Throws
// kInvalidArgument for quantised input without requantise, for non-finite weights (naming tensor
// and element) and for types or an importance that match no tensor, kIo if the file cannot be
// written. On failure no file is left. mix null: every tensor keeps its type.
QuantiseResult quantise_file(const GgufFile& file, const std::string& to, const QuantiseMix* mix,
                             const QuantiseOptions& options = {});
inline QuantiseResult quantise_file(const GgufFile& file, const std::string& to,
                                    const QuantiseMix& mix, const QuantiseOptions& options = {}) {
  return quantise_file(file, to, &mix, options);
}

}  // namespace prism::llm
