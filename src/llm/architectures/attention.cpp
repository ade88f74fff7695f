// The attention block: heads, their norms and rotation, the cache, and the output projection.
#include <cmath>

#include "llm/architectures/blocks.h"
#include "llm/architectures/training_types.h"
#include "prism/ops/attention.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/norm.h"

namespace prism::llm {

Blocks::Heads Blocks::heads(const LayerWeights& w, const Tensor& x) const {
  const LayerConfig& sizes = config_.at(layer_);
  Heads result;
  if (w.qkv) {
    const int64_t q = sizes.heads * sizes.head_dim, k = sizes.kv_heads * sizes.head_dim,
                  v = sizes.kv_heads * sizes.value_dim;
    Tensor all = project(x, w.qkv);
    std::vector<Tensor> parts;
    if (const int64_t stride = config_.qkv_stride; stride > k) {
      parts = {all.slice(-1, 0, q), all.slice(-1, stride, stride + k),
               all.slice(-1, 2 * stride, 2 * stride + v)};
    } else {
      if (all.size(-1) > q + k + v) all = all.slice(-1, 0, q + k + v);
      parts = split(all, {q, k, v}, -1);
    }
    const Linear* const own[] = {&w.q, &w.k, &w.v};
    for (size_t i = 0; i < parts.size(); ++i)
      if (own[i]->lora_a) parts[i] = parts[i] + adapted(x, *own[i]);
    result = {parts[0], parts[1], parts[2], {}};
  } else {
    result.q = project(x, w.q);
    if (w.k) result.k = project(x, w.k);
    if (w.k) result.v = w.v ? project(x, w.v) : result.k;
  }
  if (config_.q_has_gate) {
    const std::vector<Tensor> both =
        split(result.q.reshape({x.size(0), sizes.heads, 2 * sizes.head_dim}), 2, -1);
    result.q = both[0], result.gate = both[1];
  }
  const auto shaped = [&](Tensor& rows, int64_t heads, int64_t dim) {
    if (!rows) return;
    if (config_.qkv_clamp > 0) rows = clamp(rows, -config_.qkv_clamp, config_.qkv_clamp);
    rows = rows.reshape({x.size(0), heads, dim});
  };
  shaped(result.q, sizes.heads, sizes.head_dim);
  shaped(result.k, sizes.kv_heads, sizes.head_dim);
  shaped(result.v, sizes.kv_heads, sizes.value_dim);
  return result;
}

Tensor Blocks::head_norm(const Tensor& x, const Norm& by) const {
  if (!by) return config_.plain_head_norms && config_.is_rotated(layer_) ? norm(x, Norm()) : x;
  const Shape shape = x.shape();
  const Shape of = by.weight.shape();
  if (config_.layer_head_norms) {
    constexpr double kEpsilon = 1e-5;
    const Tensor normed = layer_norm(x, {}, {}, kEpsilon) * by.weight;
    return by.bias ? normed + by.bias : normed;
  }
  if (of == Shape({shape[2]})) return norm(x, by);
  if (of.rank() == 2) return norm(x, Norm()) * by.weight;  // each head has its own weights
  return norm(x.reshape({shape[0], shape[1] * shape[2]}), by).reshape(shape);
}

Tensor Blocks::temperature(const Device& device) const {
  const Tensor position = cast(positions(device), DType::f32) + config_.temperature_offset;
  return (log(floor(position / config_.temperature_length) + 1.0) * config_.temperature_scale + 1.0)
      .reshape({position.size(0), 1, 1});
}

Blocks::Rotation Blocks::rotation(const Device& device) const {
  Rotation result;
  if (!config_.is_rotated(layer_)) return result;
  const RopeTables& tables = ropes(device);
  const bool local =
      (config_.local_rope_base > 0 || config_.local_rope_dims > 0) && config_.is_windowed(layer_);
  const RopeTable& table = local ? tables.local : tables.all;
  result.options.dims = config_.rotated_dims(layer_);
  result.options.pairing = config_.pairing;
  result.options.magnitude = table.magnitude;
  result.frequencies = table.frequencies;
  return result;
}

Tensor Blocks::as_long_as_values(const Tensor& x) const {
  const LayerConfig& sizes = config_.at(layer_);
  const int64_t more = sizes.latent > 0 ? 0 : sizes.value_dim - sizes.head_dim;
  return more > 0 ? pad(x, {{0, 0}, {0, 0}, {0, more}}) : x;
}

CachedRows Blocks::to_cache(Heads heads, Rotation by) {
  const Device& device = heads.q.device();
  if (const LayerConfig& sizes = config_.at(layer_); sizes.value_dim > sizes.head_dim) {
    for (Tensor* const each : {&heads.q, &heads.k}) {
      if (!*each) continue;
      if (by.frequencies) *each = rope(*each, positions(device), by.frequencies, by.options);
      *each = as_long_as_values(*each);
    }
    by.frequencies = {};
  }
  const auto rotated = [&](const Tensor& x) {
    return by.frequencies ? rope(x, positions(device), by.frequencies, by.options) : x;
  };
  if (!heads.k) {
    const CachedRows& shared = written_.at(config_.at(layer_).cache_of);
    return {rotated(heads.q), shared.k_cache, shared.v_cache};
  }
  if (training_) return written_[layer_] = {rotated(heads.q), rotated(heads.k), heads.v};
  const Tensor places = layout_->places(words(device), cache_->group_of(layer_));
  const CachedRows rows = rope_to_cache(heads.q, heads.k, heads.v, places, by.frequencies,
                                        by.options, cache_->keys(layer_), cache_->values(layer_));
  written_[layer_] = rows;
  return rows;
}

Tensor Blocks::attend_sequences(const CachedRows& rows, const AttentionSettings& settings) const {
  const auto by_sequence = [&](const Tensor& x) {
    return x.reshape({training_->sequences, -1, x.size(1), x.size(2)}).permute({0, 2, 1, 3});
  };
  // Only attention with a gradient of its own has kernels for bf16.
  const bool is_plain =
      !settings.mask && !settings.sinks && settings.soft_cap == 0 && settings.max_bias == 0;
  const DType own = rows.q.dtype().plain();
  const DType type = is_plain ? attention_type(rows.q.device(), own, rows.q.size(-1),
                                               rows.q.size(0) / training_->sequences)
                              : own;
  const auto side = [&](const Tensor& x) { return by_sequence(x.astype(type)); };
  const Tensor seen = prism::attention(side(rows.q), side(rows.k_cache),
                                       side(rows.v_cache ? rows.v_cache : rows.k_cache), settings)
                          .astype(rows.q.dtype());
  return seen.permute({0, 2, 1, 3}).reshape({rows.q.size(0), rows.q.size(1), seen.size(-1)});
}

Tensor Blocks::attend(const LayerWeights& w, const CachedRows& rows, const Tensor& mask) const {
  // A shared cache may be on the device of an earlier layer.
  const Device& device = rows.k_cache.device();
  const LayerConfig& sizes = config_.at(layer_);
  AttentionSettings settings;
  settings.scale = config_.attention_scale > 0 ? config_.attention_scale
                                               : 1 / std::sqrt(static_cast<double>(sizes.head_dim));
  settings.causal = config_.is_causal(layer_);
  settings.window = config_.is_windowed(layer_) ? config_.window : 0;
  settings.chunked = config_.chunked;
  settings.soft_cap = config_.attention_soft_cap;
  settings.max_bias = config_.max_bias;
  if (w.sinks) settings.sinks = w.sinks.to(device);
  if (mask) settings.mask = mask.to(device);
  settings.value_dim = sizes.latent;
  if (training_) return attend_sequences(rows, settings);
  const Tensor& batch = words(device);
  settings.table =
      layout_->table(batch, cache_->group_of(sizes.cache_of >= 0 ? sizes.cache_of : layer_));
  const BatchShape& shape = layout_->shape();
  return cached_attention(rows.q.to(device), rows.k_cache,
                          rows.v_cache ? rows.v_cache : rows.k_cache, layout_->spans(batch),
                          shape.each_one_row ? 1 : shape.rows, settings)
      .to(rows.q.device());
}

Tensor Blocks::attention_output(const LayerWeights& w, const Tensor& x, Tensor seen) const {
  const int64_t rows = x.size(0);
  if (w.attention_gate) {  // one number for each element, or for each head
    const Tensor by = project(x, w.attention_gate);
    const Tensor gate = config_.gate_is_softplus ? softplus(by) : sigmoid(by);
    const int64_t of_head = gate.size(1) / seen.size(1);
    seen = seen * gate.reshape({rows, seen.size(1), of_head});
  }
  seen = seen.reshape({rows, seen.size(1) * seen.size(2)});
  const Tensor out =
      project(w.attention_inner_norm ? norm(seen, w.attention_inner_norm) : seen, w.out);
  return config_.attention_result_scale == 1 ? out : out * config_.attention_result_scale;
}

Tensor Blocks::attention(const LayerWeights& w, const Tensor& x) {
  if (w.latent) return latent_attention(w, x);
  Heads of = heads(w, x);
  Rotation by = rotation(x.device());
  if (config_.rotates_before_norm && by.frequencies) {
    of.q = rope(of.q, positions(x.device()), by.frequencies, by.options);
    if (of.k) of.k = rope(of.k, positions(x.device()), by.frequencies, by.options);
    by.frequencies = {};
  }
  of.q = head_norm(of.q, w.q_norm);
  if (of.k) of.k = head_norm(of.k, w.k_norm);
  if (of.v && config_.value_norms) of.v = norm(of.v, Norm());
  if (config_.temperature_scale > 0 &&
      !(config_.temperature_of_unrotated && config_.is_rotated(layer_)))
    of.q = of.q * temperature(x.device());
  const CachedRows rows = to_cache(of, by);
  Tensor mask;
  if (w.indexer) mask = chosen_keys(w, x, x);
  if (config_.bias_buckets > 0) mask = distance_biases(w, x.device());
  const Tensor seen = attend(w, rows, mask);
  return attention_output(w, x, of.gate ? seen * sigmoid(of.gate) : seen);
}

}  // namespace prism::llm
