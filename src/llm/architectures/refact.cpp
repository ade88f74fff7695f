// refact: llama with linear position biases instead of a rotation.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Refact : public TransformerArchitecture {
 public:
  // llama.cpp loads these biases and adds none of them.
  RequiredTensors required_tensors() const override {
    return {.expert_gate = false, .no_output_bias = true, .no_feed_forward_bias = true};
  }
  void configure(const GgufFile&, Config& config) const override {
    config.rope_dims = 0;
    config.max_bias = 8;
  }
  // llama.cpp loads experts and uses none: the block is its activation alone.
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    if (!w.router) return TransformerArchitecture::layer(blocks, w, x);
    const Tensor seen = x + blocks.attention(w, blocks.norm(x, w.attention_norm));
    const Tensor normed = blocks.norm(seen, w.feed_forward_norm);
    return seen + blocks.activate(normed);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_refact() { return std::make_unique<Refact>(); }

}  // namespace prism::llm
