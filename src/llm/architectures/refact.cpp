// refact: llama with linear position biases instead of a rotation.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Refact : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile&, Config& config) const override {
    config.rope_dims = 0;
    config.max_bias = 8;
  }
  // llama.cpp loads these biases and adds none of them.
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    for (Linear* each : {&layer.out, &layer.gate, &layer.up, &layer.down}) each->bias = {};
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
