// Encoders and decoders: attention to the encoder's result, and biases of distances.
#include <limits>

#include "llm/architectures/blocks.h"
#include "prism/ops/attention.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"

namespace prism::llm {

Tensor Blocks::distance_biases(const LayerWeights& w, const Device& device) {
  if (!w.distance_bias) return first_biases_;
  const int64_t rows = layout_->shape().rows, heads = config_.at(layer_).heads;
  const int64_t keys = layout_->table_entries() * cache_->block();
  const auto count = [&](int64_t end) {
    return arange(0, static_cast<double>(end), 1, DType::i32, device);
  };
  constexpr auto kFar = static_cast<double>(kFarthest);
  const Tensor key = count(keys), position = positions(device).reshape({rows, 1, 1});
  const Tensor distance = clamp(key - position, -kFar, kFar) + kFar;
  const Tensor place = distance * static_cast<double>(heads) + count(heads).reshape({1, heads, 1});
  Tensor biases = gather_rows(w.distance_bias.reshape({-1, 1}), place).reshape({rows, heads, keys});
  if (!config_.is_encoder(layer_)) {
    const Tensor encoded = layout_->encoded(words(device)).reshape({rows, 1, 1});
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    biases = where(key < encoded, kHidden, biases);
  }
  if (layer_ == 0 || layer_ == config_.encoder_layers) first_biases_ = biases;
  return biases;
}

Tensor Blocks::cross_attention(const LayerWeights& w, const Tensor& x) const {
  const LayerConfig& sizes = config_.at(layer_);
  const Tensor& batch = words(x.device());
  const CachedRows& kept = written_.at(layer_);
  AttentionSettings settings;
  settings.scale = config_.attention_scale;
  settings.causal = false;
  settings.table = layout_->table(batch, cache_->group_of(layer_));
  const Tensor q = as_long_as_values(
      project(norm(x, w.cross.norm), w.cross.q).reshape({x.size(0), sizes.heads, sizes.head_dim}));
  const BatchShape& shape = layout_->shape();
  const Tensor seen = cached_attention(q, kept.k_cache, kept.v_cache, layout_->encoded_spans(batch),
                                       shape.each_one_row ? 1 : shape.rows, settings);
  return project(seen.reshape({x.size(0), sizes.heads * sizes.value_dim}), w.cross.out);
}

CachedRows Blocks::keep_encoded(const LayerWeights& w, const Tensor& x) const {
  const LayerConfig& sizes = config_.at(layer_);
  const Tensor k =
      as_long_as_values(project(x, w.cross.k).reshape({x.size(0), sizes.kv_heads, sizes.head_dim}));
  const Tensor v = project(x, w.cross.v).reshape({x.size(0), sizes.kv_heads, sizes.value_dim});
  const Tensor places = layout_->places(words(x.device()), cache_->group_of(layer_));
  return rope_to_cache(k, k, v, places, {}, {}, cache_->keys(layer_), cache_->values(layer_));
}

}  // namespace prism::llm
