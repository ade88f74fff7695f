// What encoders share: they see whole texts and make embeddings, not the next token.
#pragma once

#include "llm/architectures/architecture.h"

namespace prism::llm {

class EncoderArchitecture : public TransformerArchitecture {
 public:
  // Embeddings and the last norm, which not all have; no output matrix.
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override;
  Tensor hidden(Blocks& blocks, const Tensor& x) const override;
  // Throws kNotSupported.
  Tensor logits(Blocks& blocks, const Tensor& hidden) const override;
};

}  // namespace prism::llm
