// Implements norms, attention over the KV cache and feed-forward layers.
#include "llm/architectures/blocks.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/attention/rope_to_cache.h"
#include "prism/error.h"
#include "prism/ops/attention.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/index.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"

namespace prism::llm {

std::vector<RopeTables> make_rope_tables(const Config& config, const Weights& weights,
                                         const std::vector<Device>& devices) {
  std::vector<RopeTables> tables;
  if (config.rope_dims == 0) return tables;
  const auto dims = static_cast<uint32_t>(config.rope_dims);
  const RopeFrequencies all =
      rope_frequencies(dims, config.rope_base, config.rope_scaling, weights.rope_divisors);
  const RopeFrequencies local =
      rope_frequencies(dims, config.local_rope_base > 0 ? config.local_rope_base : 1e4);
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

  RopeOptions rotation;
  Tensor frequencies;
  if (config_.is_rotated(layer_)) {
    const RopeTables& tables = ropes(x.device());
    const bool local = config_.local_rope_base > 0 && config_.is_windowed(layer_);
    const RopeTable& table = local ? tables.local : tables.all;
    rotation.dims = config_.rope_dims;
    rotation.pairing = config_.pairing;
    rotation.magnitude = table.magnitude;
    frequencies = table.frequencies;
  }
  const Tensor& batch = words(x.device());
  const CachedRows rows_in = rope_to_cache(q, k, v, layout_.places(batch), frequencies, rotation,
                                           cache_.keys(layer_), cache_.values(layer_));
  AttentionSettings settings;
  settings.scale = config_.attention_scale;
  settings.causal = config_.causal;
  settings.window = config_.is_windowed(layer_) ? config_.window : 0;
  settings.soft_cap = config_.attention_soft_cap;
  settings.sinks = w.sinks;
  const BatchShape& shape = layout_.shape();
  const Tensor seen =
      cached_attention(rows_in.q, rows_in.k_cache, rows_in.v_cache, layout_.spans(batch),
                       shape.each_one_row ? 1 : shape.rows, settings);
  return project(seen.reshape({rows, heads * dim}), w.out);
}

Tensor Blocks::gated(const Tensor& gate, const Tensor& up, Gating gating) {
  if (gating == Gating::silu) return swiglu(gate, up);
  if (gating == Gating::gelu) return geglu(gate, up);
  // silu_clamped: a steeper silu, both operands clamped, and up shifted by one.
  constexpr double kLimit = 7, kSteepness = 1.702;
  const Tensor held = minimum(gate, kLimit);
  return held * sigmoid(held * kSteepness) * (clamp(up, -kLimit, kLimit) + 1.0);
}

Tensor Blocks::feed_forward(const LayerWeights& w, const Tensor& x, Gating gating) const {
  const Tensor up = project(x, w.up);
  if (gating == Gating::gelu_alone) return project(gelu(up), w.down);
  if (w.gate) return project(gated(project(x, w.gate), up, gating), w.down);
  const std::vector<Tensor> both = split(up, 2, -1);
  return project(gated(both[0], both[1], gating), w.down);
}

}  // namespace prism::llm
