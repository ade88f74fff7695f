// The features and hyperparameters of each architecture.
#include "support/models/tiny_models.h"

namespace prism::test {

namespace {

using Style = ReferenceModel::Style;

void use_experts(TinyModel& tiny) {
  tiny.use_experts(4, 2);
  tiny.set("expert_feed_forward_length", tiny.reference.wide);
}

void use_yarn(TinyModel& tiny) {
  tiny.set("rope.scaling.type", "yarn");
  tiny.set("rope.scaling.factor", 4.f);
  tiny.set("rope.scaling.original_context_length", 64);
  tiny.set("rope.scaling.yarn_beta_fast", 32.f);
  tiny.set("rope.scaling.yarn_beta_slow", 1.f);
  tiny.set("rope.scaling.attn_factor", 1.f);
}

void use_divisors(TinyModel& tiny, const char* name) {
  static const std::vector<float> kDivisors(16, 1.5f);
  tiny.file.add_tensor(name, {16}, DType::f32, std::as_bytes(std::span(kDivisors)));
}

}  // namespace

std::vector<std::string> tiny_architectures() {
  return {"llama", "qwen2",   "qwen3",   "qwen3moe", "gemma2", "gemma3",
          "phi3",  "gpt-oss", "smollm3", "granite",  "bert"};
}

std::unique_ptr<TinyModel> tiny_model(const std::string& architecture, uint32_t seed) {
  auto made = std::make_unique<TinyModel>(architecture, seed);
  TinyModel& tiny = *made;
  ReferenceModel& r = tiny.reference;
  r.width = r.wide = 256;
  r.heads = 2, r.kv_heads = 1;
  tiny.use_letters();
  tiny.set("rope.freq_base", 10000.f);
  TinyModel::Features features;
  if (architecture == "llama") {
    use_divisors(tiny, "rope_freqs.weight");
  } else if (architecture == "qwen2") {
    features.bias = true;
  } else if (architecture == "qwen3") {
    features.head_norms = true;
  } else if (architecture == "qwen3moe") {
    features.head_norms = true;
    use_experts(tiny);
  } else if (architecture == "gemma2" || architecture == "gemma3") {
    r.style = Style::gemma;
    features.output = false;
    features.head_norms = architecture == "gemma3";
    tiny.set("final_logit_softcapping", 30.f);
    tiny.set("attention.sliding_window", 8);
    if (architecture == "gemma2") tiny.set("attn_logit_softcapping", 50.f);
    if (architecture == "gemma3") tiny.set("rope.freq_base_swa", 10000.f);
  } else if (architecture == "phi3") {
    features.joined = true;
    tiny.set("rope.scaling.type", "longrope");
    tiny.set("rope.scaling.original_context_length", 64);
    tiny.set("rope.scaling.attn_factor", 1.25f);
    tiny.set("attention.sliding_window", 9);
    use_divisors(tiny, "rope_factors_long.weight");
    use_divisors(tiny, "rope_factors_short.weight");
  } else if (architecture == "gpt-oss") {
    r.style = Style::gpt_oss;
    features.bias = features.sinks = true;
    tiny.set("attention.sliding_window", 7);
    use_yarn(tiny);
    use_experts(tiny);
  } else if (architecture == "granite") {
    for (const char* name : {"embedding_scale", "residual_scale", "attention.scale", "logit_scale"})
      tiny.set(name, 0.5f);
  } else if (architecture == "bert") {
    r.style = Style::bert;
    r.kv_heads = r.heads;
    r.rope_dims = 0;
    features.bias = true;
    tiny.set("attention.causal", false);
    tiny.set("pooling_type", 1);
  }
  tiny.finish(features);
  return made;
}

}  // namespace prism::test
