// What an architecture is: which weights its layers have, and how a layer is put together from
// blocks. One file each: llama.cpp, qwen2.cpp ...
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llm/model/config.h"
#include "llm/model/weights.h"

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

// Layers of most: what comes in, plus attention of its norm; and that, plus a feed-forward layer
// (or experts) of its norm.
class PreNormArchitecture : public Architecture {
 public:
  void load_layer(WeightLoader& from, LayerWeights& layer) const override;
  Tensor layer(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const override;
};

// By the name in general.architecture. Throws kNotSupported for one that is not known, with a list
// of those that are.
std::unique_ptr<Architecture> make_architecture(const std::string& name);
std::vector<std::string_view> known_architectures();

// --- one file each
std::unique_ptr<Architecture> make_llama();
std::unique_ptr<Architecture> make_qwen2();
std::unique_ptr<Architecture> make_qwen3();
std::unique_ptr<Architecture> make_qwen3moe();
std::unique_ptr<Architecture> make_gemma2();
std::unique_ptr<Architecture> make_gemma3();
std::unique_ptr<Architecture> make_phi3();
std::unique_ptr<Architecture> make_gpt_oss();
std::unique_ptr<Architecture> make_smollm3();
std::unique_ptr<Architecture> make_granite();
std::unique_ptr<Architecture> make_bert();

}  // namespace prism::llm
