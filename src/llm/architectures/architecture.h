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
  // The tensors that a layer cannot do without; see RequiredTensors.
  virtual RequiredTensors required_tensors() const { return {}; }
  virtual void load_layer(WeightLoader& from, LayerWeights& layer) const = 0;
  // Loads the weights outside the layers; the token embedding is already loaded.
  virtual void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const;

  // --- the graph of a forward pass; x is [rows, width]
  virtual Tensor embed(Blocks& blocks) const;
  virtual Tensor layer(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const = 0;
  // Applies the final norm to the wanted rows.
  virtual Tensor hidden(Blocks& blocks, const Tensor& x) const;
  virtual Tensor logits(Blocks& blocks, const Tensor& hidden) const;

 protected:
  // Embeddings of positions and token types and their norm, if the file has them.
  static void load_embeddings(WeightLoader& from, const Placement& placement, Weights& weights);
  // The output matrix, which may be the token embedding, and its bias.
  static void load_output(WeightLoader& from, const Placement& placement, Weights& weights);
};

// The layer structure that most models share: x + attention(norm(x)), then x +
// feed_forward(norm(x)) or experts. Norms before and after a block are as norm_names() says; Config
// says the rest.
class TransformerArchitecture : public Architecture {
 public:
  virtual NormNames norm_names() const { return {}; }
  // The block that mixes positions, if it is not the usual attention in every layer.
  virtual void load_mixer(WeightLoader& from, LayerWeights& layer) const { from.attention(layer); }
  virtual Tensor mix(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const;
  void load_layer(WeightLoader& from, LayerWeights& layer) const override;
  Tensor layer(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const override;
};

// Looks up the name in general.architecture. Throws kNotSupported listing the known names.
std::unique_ptr<Architecture> make_architecture(const std::string& name);
std::vector<std::string_view> known_architectures();
bool is_known_architecture(std::string_view name);
// What files of other architectures hold, and what to do: "a model that makes pictures; ...". Empty
// if that is not known.
std::string_view other_kind(std::string_view architecture);
// Throws kNotSupported unless Prism knows the file's architecture. The error says what the file
// holds in place of a language model, if its architecture tells.
void check_architecture(const GgufFile& file);

// --- one file for each
#define PRISM_ARCHITECTURE(name, make, models) std::unique_ptr<Architecture> make();
#include "llm/architectures/architecture_list.inc"
#undef PRISM_ARCHITECTURE

}  // namespace prism::llm
