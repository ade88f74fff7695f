// What gemma2 and gemma3 have in common.
#pragma once

#include "llm/architectures/architecture.h"

namespace prism::llm {

class GemmaArchitecture : public Architecture {
 public:
  void load_layer(WeightLoader& from, LayerWeights& layer) const override;
  Tensor layer(Blocks& blocks, const LayerWeights& weights, const Tensor& x) const override;

 protected:
  // The model of 27 billion parameters, told by its layers, scales scores by the width a head has
  // of the embedding and not by the head's own.
  static void configure_gemma(Config& config, int64_t layers_of_27b);
};

}  // namespace prism::llm
