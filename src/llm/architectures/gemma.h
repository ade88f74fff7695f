// Code shared by gemma2 and gemma3.
#pragma once

#include "llm/architectures/architecture.h"

namespace prism::llm {

// Norms before and after each block.
class GemmaArchitecture : public TransformerArchitecture {
 public:
  NormNames norm_names() const override {
    return {.attention_post = "post_attention_norm", .feed_forward_post = "post_ffw_norm"};
  }

 protected:
  // The 27B model, identified by its number of layers, scales attention scores by width / heads
  // instead of head_dim.
  static void configure_gemma(Config& config, int64_t layers_of_27b);
  // gemma3n and gemma4: no scale of the scores, norms of the values, windows with their own
  // rotation.
  static void configure_unscaled(const GgufFile& file, Config& config);
};

}  // namespace prism::llm
