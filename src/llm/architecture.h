// What an architecture is: which weights its layers have, and how a layer is put together from
// blocks. One file each: llama.cpp, qwen.cpp ...
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llm/config.h"
#include "llm/weights.h"

namespace prism::llm {

class Blocks;  // blocks.h

class Architecture {
 public:
  virtual ~Architecture() = default;

  // Hyperparameters beyond those of read_config.
  virtual void configure(const GgufFile& file, Config& config) const = 0;
  virtual void load_layer(WeightLoader& from, LayerWeights& layer) const = 0;
  // What is before the first layer (the table of tokens is there already) and after the last: the
  // last norm, and the product to logits, which may share the table.
  virtual void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const;

  // --- the graph of a forward; x is [rows, width]
  virtual Tensor embed(Blocks& blocks) const;
  virtual Tensor layer(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const = 0;
  // The last norm, of the rows that are wanted.
  virtual Tensor hidden(Blocks& blocks, const Tensor& x) const;
  virtual Tensor logits(Blocks& blocks, const Tensor& hidden) const;
};

// By the name in general.architecture. Throws kNotSupported for one that is not known, with a list
// of those that are.
std::unique_ptr<Architecture> make_architecture(const std::string& name);
std::vector<std::string_view> known_architectures();

// --- one file each
std::unique_ptr<Architecture> make_llama();

}  // namespace prism::llm
