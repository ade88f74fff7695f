// kimi-linear, whose layers of the delta rule and of latent attention bailingmoe3 and kimi-k3
// share.
#pragma once

#include <string>

#include "llm/architectures/recurrent.h"

namespace prism::llm {

class KimiLinear : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override;
  RequiredTensors required_tensors() const override { return {.shared_expert = false}; }
  void load_mixer(WeightLoader& from, LayerWeights& layer) const override;
  Tensor mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override;

 protected:
  virtual void finish(const GgufFile& file, Config& config) const;
  // The decays and the gate of the output, made by two matrices each.
  virtual void load_gates(WeightLoader& from, LayerWeights& layer) const;
  // The logarithm of the decays, [rows, heads, keys].
  virtual Tensor gate(const Blocks& blocks, const LayerWeights& w, const Tensor& x) const;
  static Tensor rates(const Blocks& blocks, const LayerWeights& w);
};

}  // namespace prism::llm
