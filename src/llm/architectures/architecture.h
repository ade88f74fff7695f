// The interface of an architecture: which weights its layers have, and how a layer is built from
// blocks. Each architecture has its own file: llama.cpp, qwen2.cpp ...
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

  // Sets hyperparameters beyond those of read_config.
  virtual void configure(const GgufFile& file, Config& config) const = 0;
  virtual void load_layer(WeightLoader& from, LayerWeights& layer) const = 0;
  // Loads the weights outside the layers: the final norm and the output matrix, which may share the
  // token embedding (already loaded).
  virtual void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const;

  // --- the graph of a forward pass; x is [rows, width]
  virtual Tensor embed(Blocks& blocks) const;
  virtual Tensor layer(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const = 0;
  // Applies the final norm to the wanted rows.
  virtual Tensor hidden(Blocks& blocks, const Tensor& x) const;
  virtual Tensor logits(Blocks& blocks, const Tensor& hidden) const;
};

// The layer structure most models share: x + attention(norm(x)), then x + feed_forward(norm(x)) or
// experts.
class PreNormArchitecture : public Architecture {
 public:
  void load_layer(WeightLoader& from, LayerWeights& layer) const override;
  Tensor layer(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const override;
};

// Looks up the name in general.architecture. Throws kNotSupported listing the known names.
std::unique_ptr<Architecture> make_architecture(const std::string& name);
std::vector<std::string_view> known_architectures();

// --- one file per architecture
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
