// The Hugging Face decoders of MiMo V2: Flash and V2.5.
#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum ConfigKind;

// --- tensors
constexpr TensorRule kMimo[] = {
    {"model.layers.{}.self_attn.attention_sink_bias", "blk.{}.attn_sinks.weight"},
    {"model.layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
};
constexpr TensorRule kMimoFused[] = {
    {"model.layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight", TensorChange::by_rank},
};

// --- hyperparameters
constexpr ConfigRule kMimoSizes[] = {
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", number, false},
    {"layernorm_epsilon", "attention.layer_norm_rms_epsilon", number, false},  // MiMo's own name
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"attention_value_scale", "attention.value_scale", number, false},
};

// --- what rows of the table cannot say
// Layers with windows have more heads of keys and a rotation of their own. MiMo's own files number
// the kinds of layers, and count the positions before a token in the window.
void more_mimo2(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t heads = config["num_key_value_heads"].integer(1, 1 << 16),
                windowed_heads =
                    config["swa_num_key_value_heads"].integer_or(2 * heads, 1, 1 << 16),
                queries = config["num_attention_heads"].integer(1, 1 << 16);
  if (const int64_t own = config["swa_num_attention_heads"].integer_or(queries); own != queries)
    refuse(fmt::format("swa_num_attention_heads is {}; Prism's mimo2 has {} in all layers", own,
                       queries));
  const bool is_numbered = static_cast<bool>(config["hybrid_layer_pattern"]);
  std::vector<bool> windowed;
  std::vector<int32_t> key_heads;
  for (const JsonView& each :
       config[is_numbered ? "hybrid_layer_pattern" : "layer_types"].items()) {
    windowed.push_back(is_numbered ? each.integer(0, 1) == 1
                                   : each.string() == "sliding_attention");
    key_heads.push_back(static_cast<int32_t>(windowed.back() ? windowed_heads : heads));
  }
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  if (windowed.size() != static_cast<size_t>(layers))
    refuse(fmt::format("kinds of {} layers are given, there are {}", windowed.size(), layers));
  to.set(fmt::format("{}attention.sliding_window_pattern", prefix), windowed);
  to.set(fmt::format("{}attention.head_count_kv", prefix), key_heads);
  const JsonView before = config["sliding_window_size"];
  set_size(prefix, "attention.sliding_window",
           before ? before.integer(1, 1 << 29) + 1 : config["sliding_window"].integer(1, 1 << 30),
           to);
  const JsonView local = config["rope_parameters"]["sliding_attention"];
  const double base =
      local ? local["rope_theta"].number_or(1e4) : config["swa_rope_theta"].number_or(1e4);
  to.set(fmt::format("{}rope.freq_base_swa", prefix), static_cast<float>(base));
  const int64_t keys = head_length(config),
                values = config["v_head_dim"].integer_or(keys, 1, 1 << 14);
  set_size(prefix, "attention.value_length", values, to);
  if (config["swa_head_dim"].integer_or(keys, 1, 1 << 14) != keys ||
      config["swa_v_head_dim"].integer_or(values, 1, 1 << 14) != values)
    refuse("swa_head_dim or swa_v_head_dim differs; Prism's mimo2 has heads of one length");
}

bool has_window_in_mimo(const JsonView& config, int64_t layer) {
  const bool is_numbered = static_cast<bool>(config["hybrid_layer_pattern"]);
  const std::vector<JsonView> kinds =
      config[is_numbered ? "hybrid_layer_pattern" : "layer_types"].items();
  if (layer < 0 || layer >= static_cast<int64_t>(kinds.size())) return false;
  const JsonView& kind = kinds[static_cast<size_t>(layer)];
  return is_numbered ? kind.integer(0, 1) == 1 : kind.string() == "sliding_attention";
}

// The layout says for how many ranks the rows of qkv_proj are apart.
void check_fused_layout(const HfFolder& folder, GgufWriter&) {
  const std::string layout =
      JsonView(folder.config())["attention_projection_layout"].string_or("split");
  if (layout == "split" && folder.tensors().contains("model.layers.0.self_attn.qkv_proj.weight"))
    refuse("attention_projection_layout is not \"fused_qkv\", but the folder has qkv_proj");
}

}  // namespace

std::vector<HfArchitecture> hf_mimo_decoders() {
  return {
      {.name = "MiMoV2FlashForCausalLM",
       .gguf = "mimo2",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kMimo},
       .config = {kSizes, kMimoSizes},
       .expected = {kSilu,
                    {"norm_topk_prob", {"true"}},
                    {"scoring_func", {R"("sigmoid")"}},
                    {"routed_scaling_factor", {"1", "1.0"}},
                    {"n_group", {"1"}},
                    {"n_shared_experts", {"0"}}},
       .has_windows = true,
       .more = more_mimo2},
      {.name = "MiMoV2ForCausalLM",
       .gguf = "mimo2",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kMimo,
                   kMimoFused},
       .config = {kSizes, kMimoSizes},
       .expected = {kSilu,
                    {"norm_topk_prob", {"true"}},
                    {"scoring_func", {R"("sigmoid")"}},
                    {"routed_scaling_factor", {"1", "1.0"}},
                    {"n_group", {"1"}},
                    {"topk_method", {R"("noaux_tc")"}},
                    {"attention_projection_layout", {R"("fused_qkv")", R"("split")"}},
                    {"n_shared_experts", {"0"}}},
       .has_windows = true,
       .more = more_mimo2,
       .from_tensors = check_fused_layout,
       .is_other = has_window_in_mimo},
  };
}

}  // namespace prism::llm
