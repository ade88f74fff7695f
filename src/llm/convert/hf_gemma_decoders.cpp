// The Hugging Face decoders of Gemma 3n and Gemma 4: inputs of each layer, layers that share
// caches.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

std::vector<bool> set_windowed_layers(const JsonView& config, std::string_view prefix,
                                      GgufWriter& to) {
  std::vector<bool> windowed;
  for (const JsonView& each : config["layer_types"].items())
    windowed.push_back(each.string() == "sliding_attention");
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  if (static_cast<int64_t>(windowed.size()) != layers)
    refuse(fmt::format("layer_types has {} of {} layers", windowed.size(), layers));
  to.set(fmt::format("{}attention.sliding_window_pattern", prefix), windowed);
  const JsonView local = config["rope_parameters"]["sliding_attention"];
  const double base =
      local ? local["rope_theta"].number_or(1e4) : config["rope_local_base_freq"].number_or(1e4);
  to.set(fmt::format("{}rope.freq_base_swa", prefix), static_cast<float>(base));
  return windowed;
}

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kNormsAround[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
};
constexpr TensorRule kLayerInputs[] = {
    {"model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight", padded},
    {"model.per_layer_model_projection.weight", "per_layer_model_proj.weight"},
    {"model.per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
    {"model.layers.{}.per_layer_input_gate.weight", "blk.{}.inp_gate.weight"},
    {"model.layers.{}.per_layer_projection.weight", "blk.{}.proj.weight"},
    {"model.layers.{}.post_per_layer_input_norm.weight", "blk.{}.post_norm.weight"},
};
constexpr TensorRule kAltUp[] = {
    {"model.altup_projections.{}.weight", "altup_proj.weight"},
    {"model.altup_unembed_projections.{}.weight", "altup_unembd_proj.weight"},
    {"model.layers.{}.altup.correct_output_scale", "blk.{}.altup_correct_scale.weight"},
    {"model.layers.{}.altup.correction_coefs.weight", "blk.{}.altup_correct_coef.weight"},
    {"model.layers.{}.altup.prediction_coefs.weight", "blk.{}.altup_predict_coef.weight"},
    {"model.layers.{}.altup.modality_router.weight", "blk.{}.altup_router.weight"},
    {"model.layers.{}.altup.router_norm.weight", "blk.{}.altup_router_norm.weight"},
    {"model.layers.{}.laurel.linear_left.weight", "blk.{}.laurel_l.weight"},
    {"model.layers.{}.laurel.linear_right.weight", "blk.{}.laurel_r.weight"},
    {"model.layers.{}.laurel.post_laurel_norm.weight", "blk.{}.laurel_post_norm.weight"},
};
constexpr TensorRule kGemma4[] = {
    {"model.layers.{}.layer_scalar", "blk.{}.layer_output_scale.weight"},
    {"model.layers.{}.router.proj.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.router.scale", "blk.{}.ffn_gate_inp.scale"},
    {"model.layers.{}.router.per_expert_scale", "blk.{}.ffn_down_exps.scale"},
    {"model.layers.{}.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight", fused_gate},
    {"model.layers.{}.experts.gate_up_proj", "blk.{}.ffn_up_exps.weight", fused_up},
    {"model.layers.{}.experts.down_proj", "blk.{}.ffn_down_exps.weight", fused_down},
    {"model.layers.{}.pre_feedforward_layernorm_2.weight", "blk.{}.pre_ffw_norm_2.weight"},
    {"model.layers.{}.post_feedforward_layernorm_1.weight", "blk.{}.post_ffw_norm_1.weight"},
    {"model.layers.{}.post_feedforward_layernorm_2.weight", "blk.{}.post_ffw_norm_2.weight"},
};

// --- hyperparameters
constexpr ConfigRule kLayers[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"num_kv_shared_layers", "attention.shared_kv_layers"},
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input", integer, false},
};
constexpr ConfigRule kAltUpSizes[] = {
    {"altup_num_inputs", "altup.num_inputs"},
    {"altup_active_idx", "altup.active_idx"},
};
constexpr ConfigRule kGemma4Experts[] = {
    {"num_experts", "expert_count", integer, false},
    {"top_k_experts", "expert_used_count", integer, false},
    {"moe_intermediate_size", "expert_feed_forward_length", integer, false},
};

// --- what rows of the table cannot say
void set_widths(std::string_view prefix, const std::vector<int32_t>& widths, GgufWriter& to) {
  to.set(fmt::format("{}feed_forward_length", prefix), widths);
}

void more_gemma3n(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr int64_t kCachedLayers = 20, kSparseLayers = 10;
  set_windowed_layers(config, prefix, to);
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096),
                shared = config["num_kv_shared_layers"].integer(0, layers);
  if (layers - shared != std::min(layers, kCachedLayers))
    refuse(
        fmt::format("num_kv_shared_layers is {} of {}; in Prism's Gemma 3n all after the first "
                    "{} share",
                    shared, layers, kCachedLayers));
  check_layers(config, "activation_sparsity_pattern", [](int64_t layer, const JsonView& part) {
    return part.number() == (layer < kSparseLayers ? 0.95 : 0);
  });
  const JsonView wide = config["intermediate_size"];
  std::vector<int32_t> widths;
  for (int64_t i = 0; i < layers && !wide.is_array(); ++i)
    widths.push_back(static_cast<int32_t>(wide.integer(1, 1 << 20)));
  if (wide.is_array())
    for (const JsonView& each : wide.items())
      widths.push_back(static_cast<int32_t>(each.integer(1, 1 << 20)));
  set_widths(prefix, widths, to);
}

void more_gemma4(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const std::vector<bool> windowed = set_windowed_layers(config, prefix, to);
  const auto layers = static_cast<int64_t>(windowed.size()),
             shared = config["num_kv_shared_layers"].integer(0, layers);
  const auto wide = static_cast<int32_t>(config["intermediate_size"].integer(1, 1 << 20)),
             keys = static_cast<int32_t>(config["num_key_value_heads"].integer(1, 1 << 16)),
             full_keys = static_cast<int32_t>(
                 config["num_global_key_value_heads"].integer_or(keys, 1, 1 << 16));
  const bool doubles = config["use_double_wide_mlp"].boolean_or(false);
  std::vector<int32_t> widths, heads;
  for (int64_t i = 0; i < layers; ++i) {
    widths.push_back(doubles && i >= layers - shared ? 2 * wide : wide);
    heads.push_back(windowed[static_cast<size_t>(i)] ? keys : full_keys);
  }
  set_widths(prefix, widths, to);
  to.set(fmt::format("{}attention.head_count_kv", prefix), heads);
  const auto length = static_cast<uint32_t>(
      config["windowed_head_dim"].integer_or(head_length(config), 2, 1 << 14));
  for (const char* key :
       {"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"})
    to.set(fmt::format("{}{}", prefix, key), length);
  to.set(fmt::format("{}final_logit_softcapping", prefix),
         static_cast<float>(config["final_logit_softcapping"].number_or(0, 0, 1e6)));
  if (!config["hidden_size_per_layer_input"])
    to.set(fmt::format("{}embedding_length_per_layer_input", prefix), uint32_t{0});
}

}  // namespace

std::vector<HfArchitecture> hf_gemma_decoders() {
  const Expectation gelu{"hidden_activation", {R"("gelu_pytorch_tanh")"}};
  return {
      {.name = "Gemma3nForCausalLM",
       .gguf = "gemma3n",
       .tensors = {kEnds, kNormsAround, kQueryKey, kValueOutput, kFeedForward, kLayerInputs,
                   kAltUp},
       .config = {kLayers, kDecoder, kWindow, kAltUpSizes},
       .expected = {gelu,
                    {"altup_num_inputs", {"4"}},
                    {"altup_active_idx", {"0"}},
                    {"altup_correct_scale", {"true"}},
                    {"laurel_rank", {"64"}},
                    {"hidden_size_per_layer_input", {"256"}},
                    {"final_logit_softcapping", {"30.0", "30"}}},
       .has_windows = true,
       .more = more_gemma3n,
       .is_tied = true},
      {.name = "Gemma4ForCausalLM",
       .gguf = "gemma4",
       .tensors = {kEnds, kNormsAround, kQueryKey, kValueOutput, kFeedForward, kLayerInputs,
                   kGemma4},
       .config = {kLayers, kDecoder, kWindow, kGemma4Experts},
       .expected = {gelu, {"use_bidirectional_attention", {"false", R"("vision")"}}},
       .has_windows = true,
       .more = more_gemma4,
       .is_tied = true},
  };
}

}  // namespace prism::llm
