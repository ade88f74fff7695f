// kimi-linear and bailingmoe3 (Ling 3): layers of the delta rule with a decay for each key, and of
// latent attention; experts with a shared one after the first layers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "llm/architectures/kimi_linear.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/recurrence.h"

namespace prism::llm {

namespace {

constexpr const char* kParts[] = {"q", "k", "v"};

// The product with one matrix, or with two after each other.
Tensor projected(const Blocks& blocks, const LayerWeights& w, const Tensor& x,
                 const std::string& name) {
  if (const Linear& whole = w.matrix(name)) return blocks.project(x, whole);
  const Tensor first = blocks.project(x, w.matrix(name + "_a"));
  const Linear& second = w.matrix(name + "_b");
  return second ? blocks.project(first, second) : first;
}

class BailingMoe3 : public KimiLinear {
 protected:
  void finish(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    set_shared_width(file, config,
                     std::max<int64_t>(1, config_integer(file, "expert_shared_count", 1, 0, 1024)) *
                         config.expert_feed_forward);
    for (const auto& [name, limits] : {std::pair("swiglu_clamp_exp", &config.expert_limits),
                                       std::pair("swiglu_clamp_shexp", &config.inner_limits)})
      if (file.has(config_key(file, name))) *limits = config_numbers(file, name, config.layers);
    const std::string key = config_key(file, "kda.gate_lower_bound");
    config.fastest_decay = file.number(key);
    if (!(config.fastest_decay < 0))
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("model: {} is {}; it must be below 0", key, config.fastest_decay));
  }
  void load_gates(WeightLoader& from, LayerWeights& layer) const override {
    for (const char* name : {"ssm_f_a", "ssm_g_a"})
      from.keep_matrix(layer, name, {from.config().ssm.inner, from.config().width});
  }
  Tensor gate(const Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    return sigmoid(x * rates(blocks, w)) * blocks.config().fastest_decay;
  }
};

}  // namespace

void KimiLinear::configure(const GgufFile& file, Config& config) const {
  if (config.architecture == "bailingmoe3") leave_out_proposing_layers(file, config);
  set_latent_heads(file, config);
  set_latent(file, config);
  set_expert_width(file, config);
  set_leading_dense(file, config);
  set_expert_weights(file, config, ExpertScores::sigmoid);
  const int64_t head = config_integer(file, "kda.head_dim", 128, 1, 1 << 14);
  config.ssm.taps = config_integer(file, "ssm.conv_kernel", 4, 2, 1024);
  config.ssm.keys = head;
  config.ssm.rank = config.heads;
  config.ssm.inner = config.heads * head;
  const Shape before = {config.ssm.taps - 1, config.ssm.inner};
  set_states_of_headless(config, {before, before, before, {config.heads, head, head}});
  finish(file, config);
}

void KimiLinear::load_mixer(WeightLoader& from, LayerWeights& layer) const {
  if (!is_recurrent(from.config(), from.layer())) return from.attention(layer);
  const SsmConfig& ssm = from.config().ssm;
  const int64_t width = from.config().width;
  for (const char* name : kParts) {
    const std::string part(name);
    from.keep_matrix(layer, "attn_" + part, {ssm.inner, width});
    from.keep(layer, "ssm_conv1d_" + part + ".weight", {ssm.inner, ssm.taps});
    from.leave_out("attn_" + part + ".bias");  // files may have it, the model does not add it
  }
  load_gates(from, layer);
  from.keep_matrix(layer, "ssm_beta", {ssm.rank, width});
  from.keep(layer, "ssm_a", {ssm.rank});
  from.keep(layer, "ssm_dt.bias", {ssm.inner});
  from.keep(layer, "ssm_norm.weight", {ssm.keys});
  from.keep_matrix(layer, "attn_output", {width, ssm.inner});
}

Tensor KimiLinear::mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const {
  if (!is_recurrent(blocks.config(), blocks.layer())) return blocks.attention(w, x);
  const SsmConfig& ssm = blocks.config().ssm;
  const int64_t rows = x.size(0);
  const double epsilon = blocks.config().norm_epsilon;
  const Shape heads = {rows, ssm.rank, ssm.keys};
  std::vector<Tensor> parts;
  for (size_t i = 0; i < std::size(kParts); ++i) {
    const std::string part(kParts[i]);
    parts.push_back(convolved(blocks, w, blocks.project(x, w.matrix("attn_" + part + "")),
                              ("ssm_conv1d_" + part).c_str(), i)
                        .reshape(heads));
  }
  const Tensor q = unit_length(parts[0], epsilon) * (1 / std::sqrt(static_cast<double>(ssm.keys)));
  const Tensor decay = exp(
      gate(blocks, w, (projected(blocks, w, x, "ssm_f") + w.other("ssm_dt.bias")).reshape(heads)));
  const Tensor y = delta_scan(q, unit_length(parts[1], epsilon), parts[2], decay,
                              sigmoid(blocks.project(x, w.matrix("ssm_beta"))), blocks.state(3),
                              blocks.texts(x.device()))
                       .y;
  const Tensor gated = rms_norm(y, w.other("ssm_norm.weight"), epsilon) *
                       sigmoid(projected(blocks, w, x, "ssm_g").reshape(heads));
  return blocks.project(gated.reshape({rows, ssm.inner}), w.matrix("attn_output"));
}

void KimiLinear::finish(const GgufFile& file, Config& config) const {
  for (LayerConfig& each : config.each_layer) each.rotated = false;
  config.expert_weights_sum_to_one = true;
  config.shared_feed_forward =
      std::max<int64_t>(1, config_integer(file, "expert_shared_count", 1, 0, 1024)) *
      config.expert_feed_forward;
}

void KimiLinear::load_gates(WeightLoader& from, LayerWeights& layer) const {
  const SsmConfig& ssm = from.config().ssm;
  for (const char* name : {"ssm_f", "ssm_g"}) {
    from.keep_matrix(layer, std::string(name) + "_a", {ssm.keys, from.config().width});
    from.keep_matrix(layer, std::string(name) + "_b", {ssm.inner, ssm.keys});
  }
}

Tensor KimiLinear::gate(const Blocks& blocks, const LayerWeights& w, const Tensor& x) const {
  return Blocks::softplus(x) * rates(blocks, w);
}

Tensor KimiLinear::rates(const Blocks& blocks, const LayerWeights& w) {
  return w.other("ssm_a").reshape({1, blocks.config().ssm.rank, 1});
}

std::unique_ptr<Architecture> make_kimi_linear() { return std::make_unique<KimiLinear>(); }
std::unique_ptr<Architecture> make_bailingmoe3() { return std::make_unique<BailingMoe3>(); }

}  // namespace prism::llm
