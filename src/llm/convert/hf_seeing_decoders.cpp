// The text parts of Hugging Face models that also see images, where no model of text alone has the
// same layers.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kSharedExperts[] = {
    {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kChameleonNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", rotary_elements},
    {"model.layers.{}.self_attn.q_norm.bias", "blk.{}.attn_q_norm.bias", rotary_elements},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", rotary_elements},
    {"model.layers.{}.self_attn.k_norm.bias", "blk.{}.attn_k_norm.bias", rotary_elements},
};
// The matrices for the positions of images are left out.
constexpr TensorRule kCogVlm[] = {
    {"model.layers.{}.self_attn.language_expert_query_key_value.weight", "blk.{}.attn_qkv.weight"},
    {"model.layers.{}.self_attn.language_expert_dense.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.mlp.language_mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.mlp.language_mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.language_mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.self_attn.vision_expert_query_key_value.weight", ""},
    {"model.layers.{}.self_attn.vision_expert_dense.weight", ""},
    {"model.layers.{}.mlp.vision_mlp.gate_proj.weight", ""},
    {"model.layers.{}.mlp.vision_mlp.up_proj.weight", ""},
    {"model.layers.{}.mlp.vision_mlp.down_proj.weight", ""},
};
constexpr TensorRule kMuseNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", add_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight",
     add_one},
    {"model.layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight", add_one},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight", add_one},
    {"model.layers.{}.self_attn.gate_proj.weight", "blk.{}.attn_gate.weight"},
};

// --- hyperparameters
constexpr ConfigRule kOcrExperts[] = {
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"n_shared_experts", "expert_shared_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"first_k_dense_replace", "leading_dense_block_count", integer, false},
    {"routed_scaling_factor", "expert_weights_scale", number, false},
};
constexpr ConfigRule kMuse[] = {
    {"final_logit_softcapping", "final_logit_softcapping", number},
    {"output_multiplier", "logit_scale", number},
};

// --- what rows of the table cannot say
void check_rotary_base(const JsonView& config, const char* model) {
  const JsonView own = config["rope_parameters"]["rope_theta"];
  const double base = own ? own.number() : config["rope_theta"].number_or(1e4);
  if (base != 1e4) refuse(fmt::format("rope_theta is {}; Prism's {} has 10000", base, model));
}

void more_deepseek_ocr(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  check_rotary_base(config, "DeepSeek-OCR");
  to.set(fmt::format("{}expert_weights_norm", prefix), config["norm_topk_prob"].boolean_or(false));
  // Newer files list the kinds of the layers.
  const JsonView kinds = config["mlp_layer_types"];
  if (!kinds) return;
  int64_t dense = 0, layer = 0;
  for (const JsonView& each : kinds.items()) {
    if (each.string() == "dense" && dense++ != layer)
      refuse("mlp_layer_types has a dense layer behind one with experts");
    ++layer;
  }
  to.set(fmt::format("{}leading_dense_block_count", prefix), static_cast<uint32_t>(dense));
}

void more_chameleon(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}swin_norm", prefix), config["swin_norm"].boolean_or(false));
}

void more_cogvlm(const JsonView& config, std::string_view, GgufWriter&) {
  check_rotary_base(config, "CogVLM");
}

void more_muse(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const std::vector<bool> windowed = set_windowed_layers(config, prefix, to);
  if (const double epsilon = config["post_norm_eps"].number_or(1e-8); epsilon != 1e-8)
    refuse(fmt::format("post_norm_eps is {}; Prism's Muse Glimmer has 1e-08", epsilon));
  // Only layers with a window are rotated, all with the same base; 0 stands for no rotation.
  const JsonView own = config["rope_parameters"]["rope_theta"];
  const double base = own ? own.number() : config["rope_theta"].number_or(1e4);
  check_layers(config, "layer_rope_theta", [&](int64_t layer, const JsonView& theta) {
    return theta.number() == (windowed.at(static_cast<size_t>(layer)) ? base : 0);
  });
}

// Norms without weights; that of queries is multiplied by a factor.
std::vector<ComputedTensor> muse_head_norms(const JsonView& config) {
  const auto length = static_cast<size_t>(head_length(config));
  const auto scale = static_cast<float>(config["qk_scale_factor"].number_or(3.87));
  std::vector<ComputedTensor> norms;
  for (int64_t layer = 0; layer < size_of(config, "num_hidden_layers"); ++layer) {
    norms.push_back(
        {fmt::format("blk.{}.attn_q_norm.weight", layer), std::vector<float>(length, scale)});
    norms.push_back(
        {fmt::format("blk.{}.attn_k_norm.weight", layer), std::vector<float>(length, 1.0f)});
  }
  return norms;
}

}  // namespace

std::vector<HfArchitecture> hf_seeing_decoders() {
  return {
      {.name = "PaddleOCRVLForCausalLM",
       .gguf = "paddleocr",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {kSilu}},
      {.name = "DeepseekOCRForCausalLM",
       .gguf = "deepseek2-ocr",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kSharedExperts},
       .config = {kSizes, kDecoder, kOcrExperts},
       .expected = {kSilu,
                    {"topk_method", {R"("greedy")"}},
                    {"scoring_func", {R"("softmax")"}},
                    {"n_group", {"1"}},
                    {"topk_group", {"1"}},
                    {"use_mla", {"false"}},
                    {"moe_layer_freq", {"1"}}},
       .more = more_deepseek_ocr},
      {.name = "ChameleonForCausalLM",
       .gguf = "chameleon",
       .tensors = {kEnds, kChameleonNorms, kAdjacentQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {kSilu},
       .more = more_chameleon},
      {.name = "CogVLMForCausalLM",
       .gguf = "cogvlm",
       .tensors = {kEnds, kNorms, kCogVlm},
       .config = {kSizes, kDecoder},
       .expected = {kSilu, {"num_multi_query_heads", {}}},
       .more = more_cogvlm},
      {.name = "MuseGlimmerForCausalLM",
       .gguf = "muse-glimmer",
       .tensors = {kEnds, kMuseNorms, kAdjacentQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder, kWindow, kMuse},
       .expected = {{"hidden_activation", {R"("silu")"}}},
       .has_windows = true,
       .more = more_muse,
       .computed = muse_head_norms},
  };
}

}  // namespace prism::llm
