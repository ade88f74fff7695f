// The layer structure of gemma2 and gemma3: norms before and after each block.
#include "llm/architectures/gemma.h"

#include <cmath>

#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

void GemmaArchitecture::configure_gemma(Config& config, int64_t layers_of_27b) {
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  const int64_t scaled_by =
      config.layers == layers_of_27b ? config.width / config.heads : config.head_dim;
  config.attention_scale = 1 / std::sqrt(static_cast<double>(scaled_by));
}

void GemmaArchitecture::load_layer(WeightLoader& from, LayerWeights& layer) const {
  layer.attention_norm = from.norm("attn_norm");
  from.attention(layer);
  layer.attention_post_norm = from.norm("post_attention_norm");
  layer.feed_forward_norm = from.norm("ffn_norm");
  from.feed_forward(layer);
  layer.feed_forward_post_norm = from.norm("post_ffw_norm");
}

Tensor GemmaArchitecture::layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const {
  const Tensor seen =
      x + blocks.norm(blocks.attention(w, blocks.norm(x, w.attention_norm)), w.attention_post_norm);
  const Tensor inner = blocks.feed_forward(w, blocks.norm(seen, w.feed_forward_norm), Gating::gelu);
  return seen + blocks.norm(inner, w.feed_forward_post_norm);
}

}  // namespace prism::llm
