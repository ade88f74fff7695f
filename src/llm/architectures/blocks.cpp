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
  const RopeFrequencies local = rope_frequencies(
      dims, config.local_rope_base > 0 ? config.local_rope_base : 1e4, config.local_rope_scaling);
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
  if (config_.norms == NormKind::layer)
    return layer_norm(x, norm.weight, norm.bias, config_.norm_epsilon);
  const Tensor result = rms_norm(x, norm.weight, config_.norm_epsilon);
  return norm.bias ? result + norm.bias : result;
}

Tensor Blocks::post_norm(const Tensor& x, const Norm& by) const {
  if (config_.post_norm_epsilon == 0) return norm(x, by);
  return rms_norm(x, by.weight, config_.post_norm_epsilon);
}

Tensor Blocks::project(const Tensor& x, const Linear& by) const {
  return linear(x, by.weight, by.bias);
}

Blocks::Heads Blocks::heads(const LayerWeights& w, const Tensor& x) const {
  const LayerConfig& sizes = config_.at(layer_);
  const int64_t rows = x.size(0), dim = config_.head_dim, kv = sizes.kv_heads * dim;
  Heads result;
  if (w.qkv) {
    const int64_t q = sizes.heads * dim, rest = w.qkv.weight.size(0) - q - 2 * kv;
    Tensor all = project(x, w.qkv);
    if (rest > 0) all = all.slice(-1, 0, q + 2 * kv);
    const std::vector<Tensor> parts = split(all, {q, kv, kv}, -1);
    result = {parts[0], parts[1], parts[2], {}};
  } else {
    result = {project(x, w.q), project(x, w.k), project(x, w.v), {}};
  }
  if (config_.q_has_gate) {
    const std::vector<Tensor> both = split(result.q.reshape({rows, sizes.heads, 2 * dim}), 2, -1);
    result.q = both[0], result.gate = both[1];
  }
  for (Tensor* each : {&result.q, &result.k, &result.v}) {
    if (config_.qkv_clamp > 0) *each = clamp(*each, -config_.qkv_clamp, config_.qkv_clamp);
    *each = each->reshape({rows, each == &result.q ? sizes.heads : sizes.kv_heads, dim});
  }
  return result;
}

Tensor Blocks::head_norm(const Tensor& x, const Norm& by) const {
  if (!by) return x;
  const Shape shape = x.shape();
  const Shape of = by.weight.shape();
  if (of == Shape({shape[2]})) return norm(x, by);
  if (of.rank() == 2) return norm(x, Norm()) * by.weight;  // each head has its own weights
  return norm(x.reshape({shape[0], shape[1] * shape[2]}), by).reshape(shape);
}

Tensor Blocks::temperature(const Device& device) const {
  const Tensor position = cast(positions(device), DType::f32) + config_.temperature_offset;
  return (log(floor(position / config_.temperature_length) + 1.0) * config_.temperature_scale + 1.0)
      .reshape({layout_.shape().rows, 1, 1});
}

Tensor Blocks::attention(const LayerWeights& w, const Tensor& x) const {
  const int64_t rows = x.size(0);
  auto [q, k, v, gate_of_q] = heads(w, x);
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
  if (config_.rotates_before_norm && frequencies) {
    q = rope(q, positions(x.device()), frequencies, rotation);
    k = rope(k, positions(x.device()), frequencies, rotation);
    frequencies = {};
  }
  q = head_norm(q, w.q_norm);
  k = head_norm(k, w.k_norm);
  if (config_.temperature_scale > 0) q = q * temperature(x.device());
  const Tensor& batch = words(x.device());
  const size_t group = cache_.group_of(layer_);
  const CachedRows rows_in = rope_to_cache(q, k, v, layout_.places(batch, group), frequencies,
                                           rotation, cache_.keys(layer_), cache_.values(layer_));
  AttentionSettings settings;
  settings.scale = config_.attention_scale;
  settings.causal = config_.causal;
  settings.window = config_.is_windowed(layer_) ? config_.window : 0;
  settings.soft_cap = config_.attention_soft_cap;
  settings.sinks = w.sinks;
  settings.table = layout_.table(batch, group);
  const BatchShape& shape = layout_.shape();
  Tensor seen = cached_attention(rows_in.q, rows_in.k_cache, rows_in.v_cache, layout_.spans(batch),
                                 shape.each_one_row ? 1 : shape.rows, settings);
  if (gate_of_q) seen = seen * sigmoid(gate_of_q);
  if (w.attention_gate) {  // one number for each element, or for each head
    const Tensor by = project(x, w.attention_gate);
    const Tensor gate = config_.gate_is_softplus ? softplus(by) : sigmoid(by);
    const int64_t of_head = gate.size(1) / seen.size(1);
    seen = seen * gate.reshape({rows, seen.size(1), of_head});
  }
  seen = seen.reshape({rows, seen.size(1) * seen.size(2)});
  return project(w.attention_inner_norm ? norm(seen, w.attention_inner_norm) : seen, w.out);
}

Tensor Blocks::softplus(const Tensor& x) { return maximum(x, 0.0) + log1p(exp(-abs(x))); }

Tensor Blocks::activate(const Tensor& up) const {
  switch (config_.activation) {
    case Activation::gelu:
      return gelu_tanh(up);
    case Activation::gelu_erf:
      return gelu(up);
    case Activation::relu:
      return relu(up);
    case Activation::relu_squared:
      return square(relu(up));
    case Activation::xielu: {
      const Xielu& by = config_.xielu[static_cast<size_t>(layer_)];
      const Tensor below = (exp(minimum(up, by.epsilon)) - 1.0 - up) * by.below;
      return where(up > 0.0, square(up) * by.above, below) + up * by.slope;
    }
    default:
      return silu(up);
  }
}

Tensor Blocks::activate(const Tensor& gate, const Tensor& up) const {
  if (config_.activation == Activation::silu) return swiglu(gate, up);
  if (config_.activation == Activation::gelu) return geglu(gate, up);
  if (config_.activation == Activation::silu_clamped) {
    constexpr double kLimit = 7, kSteepness = 1.702;
    const Tensor held = minimum(gate, kLimit);
    return held * sigmoid(held * kSteepness) * (clamp(up, -kLimit, kLimit) + 1.0);
  }
  return activate(gate) * up;
}

Tensor Blocks::feed_forward(const LayerWeights& w, const Tensor& x) const {
  const Tensor up = project(x, w.up);
  Tensor inner;
  if (w.gate) {
    inner = activate(project(x, w.gate), up);
  } else if (up.size(-1) == w.down.weight.size(1)) {
    inner = activate(up);
  } else {
    const std::vector<Tensor> both = split(up, 2, -1);
    inner = activate(both[0], both[1]);
  }
  return project(w.feed_forward_inner_norm ? norm(inner, w.feed_forward_inner_norm) : inner,
                 w.down);
}

}  // namespace prism::llm
