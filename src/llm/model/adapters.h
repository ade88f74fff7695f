// LoRA adapters for a model: products of two narrow matrices that are added to its weights.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "prism/llm/adapter.h"
#include "prism/llm/gguf.h"
#include "prism/tensor.h"

namespace prism::llm {

// The change b a of a matrix: [rank, in] and [out, rank], f32 on the CPU. Scales are part of b. The
// matrices of experts have one axis more in front.
struct LowRank {
  Tensor a, b;
  // matrix + b a as f32, in the shape of the matrix, which is on the CPU.
  Tensor added_to(const Tensor& matrix) const;
};

// The changes of several files together: the ranks of a matrix that several files change add up.
class Adapters {
 public:
  Adapters() = default;
  // Throws kNotFound, kCorruptFile or kInvalidArgument if a file is missing, damaged, or made for
  // another model, and kNotSupported for adapters of other kinds.
  Adapters(const GgufFile& model, std::span<const LoraAdapter> files);

  // By the name of the tensor in the model; null: none.
  const LowRank* find(std::string_view tensor) const;
  const std::map<std::string, LowRank, std::less<>>& all() const { return changes_; }
  // Throws kNotSupported if a change has no effect, because the model does not use its tensor.
  void check_all_used(const std::set<std::string, std::less<>>& tensors) const;
  // Identifies the changes; empty if there are none.
  std::string fingerprint() const;

 private:
  void add(const GgufFile& model, const LoraAdapter& from);
  std::map<std::string, LowRank, std::less<>> changes_;
};

}  // namespace prism::llm
