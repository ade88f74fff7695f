// deepseek2 (V2, V3, R1) and mistral4: latent attention, experts with a shared one after the first
// layers.
#include "llm/architectures/deepseek2.h"

#include <cmath>

namespace prism::llm {

void DeepSeek2::set_yarn(const GgufFile& file, Config& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const bool is_yarn = scaling.kind == RopeScaling::Kind::yarn;
  const double factor = scaling.kind == RopeScaling::Kind::none ? 1 : scaling.factor;
  // Files have a tenth of the multiplier; glm-dsa has none.
  const double multiplier =
      config.architecture == "glm-dsa"
          ? 0
          : config_number(file, "rope.scaling.yarn_log_multiplier", 0, {.zero = true}) * 10;
  const auto grown = [&](double by) { return factor <= 1 ? 1 : 0.1 * by * std::log(factor) + 1; };
  double magnitude = config_number(file, "rope.scaling.attn_factor", 1);
  double scale = magnitude * (1 + 0.1 * std::log(factor));
  if (is_yarn) {
    const double own = config.architecture == "deepseek2" && multiplier != 1 ? multiplier : 1;
    magnitude *= multiplier != 0 ? grown(own) / grown(multiplier) : grown(1);
    scale = magnitude;
  }
  config.rope_magnitude = magnitude;
  scale *= 1 + 0.1 * multiplier * std::log(factor);
  config.attention_scale = scale * scale / std::sqrt(static_cast<double>(config.head_dim));
}

void DeepSeek2::configure(const GgufFile& file, Config& config) const {
  config.pairing = RopePairing::adjacent;
  leave_out_proposing_layers(file, config);
  set_latent_heads(file, config);
  set_latent(file, config);
  set_yarn(file, config);
  set_expert_width(file, config);
  set_leading_dense(file, config);
  // Files without a kind of scores: GLM 4.7 Flash has a sigmoid, DeepSeek a softmax.
  const bool is_glm = (config.layers == 47 || config.layers == 48) && config.vocabulary == 154880;
  set_expert_weights(file, config, is_glm ? ExpertScores::sigmoid : ExpertScores::softmax);
  set_shared_count(file, config);
  config.temperature_scale = config_number(file, "attention.temperature_scale", 0, {.zero = true});
  config.temperature_length =
      config_number(file, "attention.temperature_length", 0, {.zero = true});
  if (config.temperature_length == 0) config.temperature_scale = 0;
}

std::unique_ptr<Architecture> make_deepseek2() { return std::make_unique<DeepSeek2>(); }

}  // namespace prism::llm
