// Implements norms and feed-forward layers.
#include "llm/architectures/blocks.h"

#include <algorithm>

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
      config.local_rope_dims > 0 ? static_cast<uint32_t>(config.local_rope_dims) : dims,
      config.local_rope_base > 0 ? config.local_rope_base : 1e4, config.local_rope_scaling);
  const auto table = [&](const RopeFrequencies& from, const Device& device) {
    RopeTable result;
    const auto pairs = static_cast<int64_t>(from.frequencies.size());
    result.frequencies = from_vector(from.frequencies, {pairs}, device);
    result.magnitude = static_cast<double>(from.magnitude);
    return result;
  };
  for (const Device& device : devices) {
    tables.push_back({device, table(all, device), table(local, device)});
    if (config.rope_magnitude > 0) tables.back().all.magnitude = config.rope_magnitude;
    if (config.local_rope_magnitude > 0 &&
        config.local_rope_scaling.kind != RopeScaling::Kind::yarn)
      tables.back().local.magnitude = config.local_rope_magnitude;
  }
  return tables;
}

const Tensor& Blocks::words(const Device& device) const {
  return std::ranges::find(*batches_, device, &DeviceBatch::device)->words;
}

const RopeTables& Blocks::ropes(const Device& device) const {
  return *std::ranges::find(ropes_, device, &RopeTables::device);
}

Tensor Blocks::wanted_rows(const Tensor& x) const {
  if (training_) return training_->wanted ? gather_rows(x, training_->wanted) : x;
  if (layout_->shape().each_one_row) return x;
  return gather_rows(x, layout_->wanted(words(x.device())));
}

Tensor Blocks::norm(const Tensor& x, const Norm& norm) const {
  Tensor result;
  if (config_.norms == NormKind::layer) {
    result = layer_norm(x, norm.weight, norm.bias, config_.norm_epsilon);
  } else {
    result = rms_norm(x, norm.weight, config_.norm_epsilon);
    if (norm.bias) result = result + norm.bias;
  }
  return training_ ? cast(result, training_->compute) : result;
}

Tensor Blocks::post_norm(const Tensor& x, const Norm& by) const {
  if (config_.post_norm_epsilon == 0) return norm(x, by);
  return rms_norm(x, by.weight, config_.post_norm_epsilon);
}

Tensor Blocks::project(const Tensor& x, const Linear& by) const {
  Tensor y = linear(x, by.weight, by.scale ? Tensor() : by.bias);
  if (by.scale) y = by.bias ? y * by.scale + by.bias : y * by.scale;
  return by.lora_a ? y + adapted(x, by) : y;
}

Tensor Blocks::adapted(const Tensor& x, const Linear& by) const {
  if (by.lora_a.rank() == 2) return linear(linear(adapter_input(x), by.lora_a), by.lora_b);
  const Tensor own = own_adapters_.to(x.device());
  return expert_matmul(expert_matmul(x, by.lora_a, own), by.lora_b, own)
      .reshape({x.size(0), by.lora_b.size(1)});
}

Tensor Blocks::project(const Tensor& x, const Linear& by, const Tensor& experts) const {
  Tensor y = expert_matmul(x, by.weight, experts, by.scale ? Tensor() : by.bias);
  if (by.scale) {
    y = y * gather_rows(by.scale, experts).unsqueeze(-1);
    if (by.bias) y = y + gather_rows(by.bias, experts);
  }
  if (!by.lora_a) return y;
  const Tensor narrow = expert_matmul(adapter_input(x), by.lora_a, experts);
  return y + expert_matmul(narrow, by.lora_b, experts);
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

Tensor Blocks::activate(const Tensor& gate, const Tensor& up, double limit) const {
  if (limit > 0) {
    const Tensor inner = config_.limits_before_activation ? activate(minimum(gate, limit))
                                                          : minimum(activate(gate), limit);
    return inner * clamp(up, -limit, limit);
  }
  if (config_.activation == Activation::silu) return swiglu(gate, up);
  if (config_.activation == Activation::gelu) return geglu(gate, up);
  if (config_.activation == Activation::situ) {
    const auto bounded = [](const Tensor& x, double by) {
      return by > 0 ? tanh(x * (1 / by)) * by : x;
    };
    return bounded(gate, config_.situ_bound) * sigmoid(gate) * bounded(up, config_.situ_up_bound);
  }
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
    inner = activate(project(x, w.gate), up, limit(config_.inner_limits));
  } else if (up.size(-1) == w.down.weight.size(1)) {
    inner = activate(up);
  } else {
    const std::vector<Tensor> both = split(up, 2, -1);
    inner = activate(both[0], both[1]);
  }
  if (const Tensor scales = w.other("ffn.act.scales")) inner = inner / scales;
  return project(w.feed_forward_inner_norm ? norm(inner, w.feed_forward_inner_norm) : inner,
                 w.down);
}

}  // namespace prism::llm
