// Norms, attention over the cache, feed-forward layers.
#include "llm/blocks.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/gates.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/rope.h"

namespace prism::llm {

std::vector<RopeTables> make_rope_tables(const Config& config, const Weights& weights,
                                         const std::vector<Device>& devices) {
  std::vector<RopeTables> tables;
  if (config.rope_dims == 0) return tables;
  const auto dims = static_cast<uint32_t>(config.rope_dims);
  const RopeFrequencies all =
      rope_frequencies(dims, config.rope_base, config.rope_scaling, weights.rope_divisors);
  const RopeFrequencies local =
      rope_frequencies(dims, config.local_rope_base, config.local_rope_scaling, {});
  const auto table = [&](const RopeFrequencies& from, const Device& device) {
    RopeTable result;
    result.frequencies = from_vector(from.frequencies, {config.rope_dims / 2}, device);
    result.magnitude = static_cast<double>(from.magnitude);
    return result;
  };
  for (const Device& device : devices) {
    tables.push_back({device, table(all, device), table(local, device)});
    if (config.rope_magnitude > 0) tables.back().all.magnitude = config.rope_magnitude;
  }
  return tables;
}

const Tensor& Blocks::words(const Device& device) const {
  return std::ranges::find(batches_, device, &DeviceBatch::device)->words;
}

const RopeTables& Blocks::ropes(const Device& device) const {
  return *std::ranges::find(ropes_, device, &RopeTables::device);
}

Tensor Blocks::wanted_rows(const Tensor& x) const {
  if (layout_.shape().each_one_row) return x;
  return gather_rows(x, layout_.wanted(words(x.device())));
}

Tensor Blocks::norm(const Tensor& x, const Norm& norm) const {
  return rms_norm(x, norm.weight, config_.norm_epsilon);
}

Tensor Blocks::layer_norm(const Tensor& x, const Norm& norm) const {
  return prism::layer_norm(x, norm.weight, norm.bias, config_.norm_epsilon);
}

Tensor Blocks::project(const Tensor& x, const Linear& by) const {
  return linear(x, by.weight, by.bias);
}

Tensor Blocks::rotated(const Tensor& x) const {
  if (!config_.is_rotated(layer_)) return x;
  const RopeTables& tables = ropes(x.device());
  const RopeTable& table = config_.is_windowed(layer_) ? tables.local : tables.all;
  RopeOptions options;
  options.dims = config_.rope_dims;
  options.pairing = config_.pairing;
  options.magnitude = table.magnitude;
  return rope(x, positions(x.device()), table.frequencies, options);
}

// The cache with the rows of this batch written into it.
Tensor Blocks::cached(const Tensor& cache, const Tensor& rows) const {
  const Tensor flat = cache.reshape({-1, config_.kv_heads, config_.head_dim});
  const Tensor stored = cache.type() == rows.type() ? rows : cast(rows, cache.type());
  return write_rows(flat, layout_.cache_rows(words(rows.device())), stored).reshape(cache.shape());
}

Tensor Blocks::attention(const LayerWeights& w, const Tensor& x) const {
  const int64_t rows = x.size(0), heads = config_.heads, kv_heads = config_.kv_heads,
                dim = config_.head_dim;
  Tensor q, k, v;
  if (w.qkv) {
    const std::vector<Tensor> parts =
        split(project(x, w.qkv), {heads * dim, kv_heads * dim, kv_heads * dim}, -1);
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = project(x, w.q), k = project(x, w.k), v = project(x, w.v);
  }
  q = q.reshape({rows, heads, dim});
  k = k.reshape({rows, kv_heads, dim});
  v = v.reshape({rows, kv_heads, dim});
  if (w.q_norm) q = rms_norm(q, w.q_norm, config_.norm_epsilon);
  if (w.k_norm) k = rms_norm(k, w.k_norm, config_.norm_epsilon);
  AttentionSettings settings;
  settings.scale = config_.attention_scale;
  settings.causal = config_.causal;
  settings.window = config_.is_windowed(layer_) ? config_.window : 0;
  settings.soft_cap = config_.attention_soft_cap;
  settings.sinks = w.sinks;
  const BatchShape& shape = layout_.shape();
  const Tensor seen = cached_attention(
      rotated(q), cached(cache_.keys(layer_), rotated(k)), cached(cache_.values(layer_), v),
      layout_.spans(words(x.device())), shape.each_one_row ? 1 : shape.rows, settings);
  return project(seen.reshape({rows, heads * dim}), w.out);
}

Tensor Blocks::feed_forward(const LayerWeights& w, const Tensor& x, Gating gating) const {
  const Tensor up = project(x, w.up);
  Tensor inner;
  if (gating == Gating::none_gelu) {
    inner = gelu(up);
  } else if (w.gate) {
    const Tensor gate = project(x, w.gate);
    inner = gating == Gating::silu ? swiglu(gate, up) : geglu(gate, up);
  } else {
    inner = gating == Gating::silu ? swiglu(up) : geglu(up);
  }
  return project(inner, w.down);
}

}  // namespace prism::llm
