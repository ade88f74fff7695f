// The Hugging Face decoders with experts whose folders have names of their own: DeepSeek 1, Step
// 3.5, MiniMax-01, SmallThinker, DBRX, Arctic.
#include <algorithm>

#include "llm/convert/hf_rules.h"

namespace prism::llm {

std::vector<JsonView> of_layers(const JsonView& config, const char* key) {
  std::vector<JsonView> all = config[key].items();
  const auto layers = static_cast<size_t>(config["num_hidden_layers"].integer(1, 4096));
  if (all.size() < layers) refuse(fmt::format("{} has {} of {} layers", key, all.size(), layers));
  all.erase(all.begin() + static_cast<int64_t>(layers), all.end());
  return all;
}

void set_limits(const JsonView& config, const char* from, std::string_view prefix,
                const char* to_key, GgufWriter& to) {
  if (!config[from]) return;
  std::vector<float> limits;
  for (const JsonView& each : of_layers(config, from))
    limits.push_back(static_cast<float>(each.number_or(0, 0, 1e9)));
  to.set(fmt::format("{}{}", prefix, to_key), limits);
}

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kSharedExperts[] = {
    {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kStep[] = {
    {"model.norm.weight", "output_norm.weight", add_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", add_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", add_one},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", add_one},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", add_one},
    {"model.layers.{}.self_attn.g_proj.weight", "blk.{}.attn_gate.weight"},
    {"model.layers.{}.moe.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.moe.router_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.moe.gate_proj.weight", "blk.{}.ffn_gate_exps.weight"},
    {"model.layers.{}.moe.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
    {"model.layers.{}.moe.down_proj.weight", "blk.{}.ffn_down_exps.weight"},
    {"model.layers.{}.share_expert.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.share_expert.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.share_expert.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kLightning[] = {
    {"model.layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"model.layers.{}.self_attn.output_gate.weight", "blk.{}.attn_gate.weight"},
    {"model.layers.{}.self_attn.norm.weight", "blk.{}.attn_norm_2.weight"},
    {"model.layers.{}.self_attn.out_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.self_attn.slope_rate", ""},  // follows from the layer, and so do these
    {"model.layers.{}.self_attn.query_decay", ""},
    {"model.layers.{}.self_attn.key_decay", ""},
    {"model.layers.{}.self_attn.diagonal_decay", ""},
};
constexpr TensorRule kSmallThinker[] = {
    {"model.layers.{}.block_sparse_moe.primary_router.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.gate.weight", "blk.{}.ffn_gate_exps.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.up.weight", "blk.{}.ffn_up_exps.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.down.weight", "blk.{}.ffn_down_exps.weight"},
};
constexpr TensorRule kDbrx[] = {
    {"transformer.wte.weight", "token_embd.weight"},
    {"transformer.norm_f.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"transformer.blocks.{}.norm_attn_norm.norm_1.weight", "blk.{}.attn_norm.weight"},
    {"transformer.blocks.{}.norm_attn_norm.norm_2.weight", "blk.{}.attn_output_norm.weight"},
    {"transformer.blocks.{}.norm_attn_norm.attn.Wqkv.weight", "blk.{}.attn_qkv.weight"},
    {"transformer.blocks.{}.norm_attn_norm.attn.out_proj.weight", "blk.{}.attn_output.weight"},
    {"transformer.blocks.{}.ffn.router.layer.weight", "blk.{}.ffn_gate_inp.weight"},
    {"transformer.blocks.{}.ffn.experts.mlp.w1", "blk.{}.ffn_gate_exps.weight", by_expert},
    {"transformer.blocks.{}.ffn.experts.mlp.v1", "blk.{}.ffn_up_exps.weight", by_expert},
    {"transformer.blocks.{}.ffn.experts.mlp.w2", "blk.{}.ffn_down_exps.weight",
     by_expert_transposed},
};
constexpr TensorRule kArctic[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm_exps.weight"},
    {"model.layers.{}.residual_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.residual_mlp.w1.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.residual_mlp.w3.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.residual_mlp.w2.weight", "blk.{}.ffn_down.weight"},
};

// --- hyperparameters
constexpr ConfigRule kDeepSeekMoe[] = {
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"n_shared_experts", "expert_shared_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"first_k_dense_replace", "leading_dense_block_count"},
};
constexpr ConfigRule kStepMoe[] = {
    {"moe_num_experts", "expert_count"},
    {"moe_top_k", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"share_expert_dim", "expert_shared_feed_forward_length"},
    {"moe_router_scaling_factor", "expert_weights_scale", number, false},
    {"sliding_window", "attention.sliding_window"},
};
constexpr ConfigRule kSmallThinkerSizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"moe_ffn_hidden_size", "feed_forward_length"},
    {"moe_ffn_hidden_size", "expert_feed_forward_length"},
    {"moe_num_primary_experts", "expert_count"},
    {"moe_num_active_primary_experts", "expert_used_count"},
};
constexpr ConfigRule kDbrxSizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"num_key_value_heads", "attention.head_count_kv"},
    {"ffn_hidden_size", "feed_forward_length"},
    {"moe_num_experts", "expert_count"},
    {"moe_top_k", "expert_used_count"},
    {"clip_qkv", "attention.clamp_kqv", number},
};

// --- what rows of the table cannot say
// Layers with windows have heads and a rotation of their own; of the others half a head is rotated,
// which files do not say.
void more_step(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr uint32_t kSigmoid = 2;
  const auto key = [&](const char* name) { return fmt::format("{}{}", prefix, name); };
  to.set(key("expert_gating_func"), kSigmoid);
  to.set(key("expert_weights_norm"), config["norm_expert_weight"].boolean_or(true));
  const JsonView other = config["attention_other_setting"], rotations = config["rope_parameters"];
  const auto count = [&](const JsonView& from, const char* name, int64_t otherwise) {
    return static_cast<int32_t>(from[name].integer_or(otherwise, 1, 1 << 16));
  };
  const int32_t heads = count(config, "num_attention_heads", 0),
                key_heads = count(config, "num_attention_groups", 0);
  std::vector<bool> windowed;
  std::vector<int32_t> each_heads, each_key_heads;
  for (const JsonView& each : of_layers(config, "layer_types")) {
    windowed.push_back(each.string() == "sliding_attention");
    each_heads.push_back(windowed.back() ? count(other, "num_attention_heads", heads) : heads);
    each_key_heads.push_back(windowed.back() ? count(other, "num_attention_groups", key_heads)
                                             : key_heads);
  }
  to.set(key("attention.sliding_window_pattern"), windowed);
  to.set(key("attention.head_count"), each_heads);
  to.set(key("attention.head_count_kv"), each_key_heads);
  const auto part = [&](const char* kind) {
    return rotations[kind]["partial_rotary_factor"].number_or(1, 0, 1);
  };
  if (part("full_attention") != 0.5 || part("sliding_attention") != 1)
    refuse(
        fmt::format("partial_rotary_factors are {} and {}; Prism's step35 rotates half a head, "
                    "and whole ones in layers with windows",
                    part("full_attention"), part("sliding_attention")));
  set_size(prefix, "rope.dimension_count", head_length(config), to);
  to.set(key("rope.freq_base_swa"),
         static_cast<float>(rotations["sliding_attention"]["rope_theta"].number(1e-3, 1e12)));
  if (config["rope_scaling"] && config["yarn_only_types"].json().dump() != R"(["full_attention"])")
    refuse("yarn_only_types is not [\"full_attention\"]; Prism's step35 scales the rotation there");
  const JsonView named = config["moe_layers_enum"];
  const std::string first = named ? named.is_string() ? named.string() : named.json().dump() : "";
  const size_t digits = first.find_first_of("0123456789");
  const bool has_any = digits != first.npos;
  set_size(prefix, "leading_dense_block_count", has_any ? std::stol(first.substr(digits, 6)) : 0,
           to);
  set_limits(config, "swiglu_limits", prefix, "swiglu_clamp_exp", to);
  set_limits(config, "swiglu_limits_shared", prefix, "swiglu_clamp_shexp", to);
}

// MiniMax's own files and those of transformers name the factors of the residual stream, and the
// layers with usual attention, in their own ways.
void more_minimax_01(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr const char* kFactors[][2] = {
      {"layernorm_full_attention_alpha", "full_attn_alpha_factor"},
      {"layernorm_linear_attention_alpha", "linear_attn_alpha_factor"},
      {"layernorm_mlp_alpha", "mlp_alpha_factor"},
      {"layernorm_full_attention_beta", "full_attn_beta_factor"},
      {"layernorm_linear_attention_beta", "linear_attn_beta_factor"},
      {"layernorm_mlp_beta", "mlp_beta_factor"}};
  const auto factor = [&](size_t i) {
    const char* const key = kFactors[i][config[kFactors[i][0]] ? 0 : 1];
    return config[key].number_or(1, 0, 1e6);
  };
  for (size_t i = 0; i < std::size(kFactors); ++i)
    if (const double wanted = i < 3 ? factor(0) : 1; factor(i) != wanted)
      refuse(fmt::format("{} is {}; Prism's minimax-01 needs {}, one alpha for all and betas of 1",
                         kFactors[i][0], factor(i), wanted));
  to.set(fmt::format("{}residual_scale", prefix), static_cast<float>(factor(0)));
  std::vector<bool> recurs;
  const bool is_numbered = static_cast<bool>(config["attn_type_list"]);
  for (const JsonView& each : of_layers(config, is_numbered ? "attn_type_list" : "layer_types"))
    recurs.push_back(is_numbered ? each.integer(0, 1) == 0 : each.string() == "linear_attention");
  to.set(fmt::format("{}attention.recurrent_layers", prefix), recurs);
}

// Every fourth layer has neither a window nor a rotation; or no layer has a window, and all rotate.
void more_smallthinker(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr uint32_t kSoftmax = 1, kSigmoid = 2;
  to.set(fmt::format("{}expert_gating_func", prefix),
         config["moe_primary_router_apply_softmax"].boolean_or(false) ? kSoftmax : kSigmoid);
  std::vector<int64_t> windowed;
  for (const JsonView& each : of_layers(config, "sliding_window_layout"))
    windowed.push_back(each.integer(0, 1));
  const bool has_windows = std::ranges::find(windowed, 1) != windowed.end();
  for (const char* key : {"sliding_window_layout", "rope_layout"}) {
    const std::vector<JsonView> all = of_layers(config, key);
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_full = i % 4 == 0, is_rope = std::string_view(key) == "rope_layout";
      const int64_t wanted = has_windows ? !is_full : is_rope;
      if (all[i].integer() != wanted)
        refuse(fmt::format("{} is {} for layer {}; Prism's smallthinker has {} there", key,
                           all[i].integer(), i, wanted));
    }
  }
  if (!has_windows) return;
  if (const int64_t window = config["sliding_window_size"].integer(1, 1 << 30); window != 4096)
    refuse(fmt::format("sliding_window_size is {}; Prism's smallthinker has 4096", window));
  set_size(prefix, "attention.sliding_window", 4096, to);
}

void more_dbrx(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}attention.layer_norm_epsilon", prefix), 1e-5f);  // not in config.json
  if (const std::string name = config["ffn_act_fn"]["name"].string_or("silu"); name != "silu")
    refuse(fmt::format("ffn_act_fn is \"{}\"; Prism's dbrx has \"silu\"", printable(name)));
}

void more_arctic(const JsonView& config, std::string_view, GgufWriter&) {
  if (const int64_t step = config["moe_layer_frequency"].integer_or(2); step != 1)
    refuse(
        fmt::format("moe_layer_frequency is {}; Prism's arctic has experts in each layer", step));
}

}  // namespace

std::vector<HfArchitecture> hf_mixture_decoders() {
  const HfArchitecture minimax{
      .name = "MiniMaxText01ForCausalLM",
      .gguf = "minimax-01",
      .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kLightning, kMixtralExperts},
      .config = {kSizes, kDecoder, kMixtral},
      .expected = {kSilu, {"postnorm", {"true"}}, {"shared_intermediate_size", {"0"}}},
      .more = more_minimax_01};
  HfArchitecture minimax_of_transformers = minimax;
  minimax_of_transformers.name = "MiniMaxForCausalLM";
  return {
      {.name = "DeepseekForCausalLM",
       .gguf = "deepseek",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kFeedForward, kExperts,
                   kSharedExperts},
       .config = {kSizes, kDecoder, kDeepSeekMoe},
       .expected = {kSilu,
                    {"norm_topk_prob", {"false"}},
                    {"scoring_func", {R"("softmax")"}},
                    {"routed_scaling_factor", {"1", "1.0"}},
                    {"moe_layer_freq", {"1"}}}},
      {.name = "Step3p5ForCausalLM",
       .gguf = "step35",
       .tensors = {kEnds, kStep, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder, kStepMoe},
       .expected = {kSilu,
                    {"moe_router_activation", {R"("sigmoid")"}},
                    {"moe_every_n_layer", {"1"}},
                    {"use_moe_router_bias", {"true"}},
                    {"use_head_wise_attn_gate", {"true"}},
                    {"use_qk_norm", {"true"}},
                    {"use_rope_layers", {"[]"}},
                    {"zero_centered", {"true"}},
                    {"sink", {"false"}}},
       .has_windows = true,
       .more = more_step},
      minimax,
      minimax_of_transformers,
      {.name = "SmallThinkerForCausalLM",
       .gguf = "smallthinker",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kSmallThinker},
       .config = {kSmallThinkerSizes, kDecoder},
       .expected = {{"moe_enable_early_router", {"true"}},
                    {"moe_enable_secondary_experts", {"false"}},
                    {"norm_topk_prob", {"true"}}},
       .has_windows = true,
       .more = more_smallthinker},
      {.name = "DbrxForCausalLM",
       .gguf = "dbrx",
       .tensors = {kDbrx},
       .config = {kDbrxSizes},
       .expected = {{"moe_normalize_expert_weights", {"1", "1.0"}}},
       .more = more_dbrx},
      {.name = "ArcticForCausalLM",
       .gguf = "arctic",
       .tensors = {kEnds, kArctic, kAdjacentQueryKey, kValueOutput, kMixtralExperts},
       .config = {kSizes, kDecoder, kMixtral},
       .expected = {kSilu, {"use_residual", {"true"}}, {"parallel_attn_mlp_res", {"true"}}},
       .more = more_arctic},
  };
}

}  // namespace prism::llm
