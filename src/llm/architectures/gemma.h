// Code shared by gemma2 and gemma3.
#pragma once

#include "llm/architectures/architecture.h"

namespace prism::llm {

class GemmaArchitecture : public Architecture {
 public:
  void load_layer(WeightLoader& from, LayerWeights& layer) const override;
  Tensor layer(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const override;

 protected:
  // The 27B model, identified by its number of layers, scales attention scores by width / heads
  // instead of head_dim.
  static void configure_gemma(Config& config, int64_t layers_of_27b);
};

}  // namespace prism::llm
