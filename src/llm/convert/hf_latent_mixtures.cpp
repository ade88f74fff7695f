// The Hugging Face decoders with experts and layers of latent attention among others: Ling 3,
// dots3.note.
#include <cmath>

#include "llm/convert/hf_rules.h"

namespace prism::llm {

int64_t windowed_size(const JsonView& config, const std::string& key) {
  if (const JsonView own = config["swa_" + key]) return own.integer(1, 1 << 16);
  // transformers has such settings by layer.
  for (const auto& [layer, own] : config["per_layer_config"].members())
    if (own[key]) return own[key].integer(1, 1 << 16);
  return config[key].integer(1, 1 << 16);
}

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kLing3[] = {
    {"model.word_embeddings.weight", "token_embd.weight"},
    {"model.layers.{}.mlp.gate.expert_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
    {"model.layers.{}.attention.dense.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.attention.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.attention.q_proj.weight", "blk.{}.attn_q.weight"},
    {"model.layers.{}.attention.g_proj.weight", "blk.{}.ssm_g_a.weight", none, 0, 1,
     RuleLayers::others},
    {"model.layers.{}.attention.g_proj.weight", "blk.{}.attn_gate.weight", none, 0, 1,
     RuleLayers::usual},
};
constexpr TensorRule kLing3Latent[] = {
    {"model.layers.{}.attention.q_a_proj.weight", "blk.{}.attn_q_a.weight"},
    {"model.layers.{}.attention.q_a_layernorm.weight", "blk.{}.attn_q_a_norm.weight"},
    {"model.layers.{}.attention.q_b_proj.weight", "blk.{}.attn_q_b.weight"},
    {"model.layers.{}.attention.kv_a_proj_with_mqa.weight", "blk.{}.attn_kv_a_mqa.weight"},
    {"model.layers.{}.attention.kv_a_layernorm.weight", "blk.{}.attn_kv_a_norm.weight"},
    {"model.layers.{}.attention.kv_b_proj.weight", "blk.{}.attn_k_b.weight", latent_keys},
    {"model.layers.{}.attention.kv_b_proj.weight", "blk.{}.attn_v_b.weight", latent_values},
};
constexpr TensorRule kLing3Delta[] = {
    {"model.layers.{}.attention.k_proj.weight", "blk.{}.attn_k.weight"},
    {"model.layers.{}.attention.v_proj.weight", "blk.{}.attn_v.weight"},
    {"model.layers.{}.attention.q_conv1d.weight", "blk.{}.ssm_conv1d_q.weight", squeezed},
    {"model.layers.{}.attention.k_conv1d.weight", "blk.{}.ssm_conv1d_k.weight", squeezed},
    {"model.layers.{}.attention.v_conv1d.weight", "blk.{}.ssm_conv1d_v.weight", squeezed},
    {"model.layers.{}.attention.f_proj.weight", "blk.{}.ssm_f_a.weight"},
    {"model.layers.{}.attention.b_proj.weight", "blk.{}.ssm_beta.weight"},
    {"model.layers.{}.attention.A_log", "blk.{}.ssm_a", positive_exp},
    {"model.layers.{}.attention.dt_bias", "blk.{}.ssm_dt.bias"},
    {"model.layers.{}.attention.o_norm.weight", "blk.{}.ssm_norm.weight"},
};
constexpr TensorRule kDots3[] = {
    {"model.layers.{}.self_attn.q_a_proj.weight", "blk.{}.attn_q_a.weight"},
    {"model.layers.{}.self_attn.q_a_layernorm.weight", "blk.{}.attn_q_a_norm.weight"},
    {"model.layers.{}.self_attn.q_b_proj.weight", "blk.{}.attn_q_b.weight"},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa.weight", "blk.{}.attn_kv_a_mqa.weight"},
    {"model.layers.{}.self_attn.kv_a_layernorm.weight", "blk.{}.attn_kv_a_norm.weight"},
    {"model.layers.{}.self_attn.k_rope_only_layernorm.weight", "blk.{}.attn_k_norm.weight"},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_k_b.weight", latent_keys},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_v_b.weight", latent_values},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.self_attn.g_proj.weight", "blk.{}.attn_gate.weight"},
    {"model.layers.{}.self_attn.indexer.k_norm.weight", "blk.{}.indexer.k_norm.weight",
     index_halves},
    {"model.layers.{}.self_attn.indexer.k_norm.bias", "blk.{}.indexer.k_norm.bias", index_halves},
    {"model.layers.{}.self_attn.indexer.weights_proj.weight", "blk.{}.indexer.proj.weight"},
    {"model.layers.{}.self_attn.indexer.wk.weight", "blk.{}.indexer.attn_k.weight", index_halves},
    {"model.layers.{}.self_attn.indexer.wq_b.weight", "blk.{}.indexer.attn_q_b.weight",
     index_halves},
    {"model.layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};

// --- hyperparameters: transformers has other names for some than the model's own files.
constexpr ConfigRule kLing3Sizes[] = {
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count", integer, false},
    {"num_experts_per_token", "expert_used_count", integer, false},
    {"num_shared_experts", "expert_shared_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"first_k_dense_replace", "leading_dense_block_count"},
    {"routed_scaling_factor", "expert_weights_scale", number},
    {"n_group", "expert_group_count", integer, false},
    {"num_expert_group", "expert_group_count", integer, false},
    {"topk_group", "expert_group_used_count"},
    {"q_lora_rank", "attention.q_lora_rank", integer, false},
    {"kv_lora_rank", "attention.kv_lora_rank"},
    {"v_head_dim", "attention.value_length_mla"},
    {"short_conv_kernel_size", "ssm.conv_kernel"},
};

constexpr ConfigRule kDots3Sizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"intermediate_size", "feed_forward_length"},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", number},
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"n_shared_experts", "expert_shared_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"routed_scaling_factor", "expert_weights_scale", number},
    {"q_lora_rank", "attention.q_lora_rank"},
    {"kv_lora_rank", "attention.kv_lora_rank"},
    {"v_head_dim", "attention.value_length_mla"},
    {"index_n_heads", "attention.indexer.head_count"},
    {"index_head_dim", "attention.indexer.key_length"},
    {"index_topk", "attention.indexer.top_k"},
};

// --- what rows of the table cannot say
// The last layer of each group has latent attention, and so have those behind the last whole group.
bool recurs_in_ling3(const JsonView& config, int64_t layer) {
  const std::vector<JsonView> kinds = config["layer_types"].items();
  if (!kinds.empty())
    return layer < static_cast<int64_t>(kinds.size()) &&
           kinds[static_cast<size_t>(layer)].string() == "linear_attention";
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096),
                group = config["layer_group_size"].integer(1, 4096);
  return (layer + 1) % group != 0 && layer < layers / group * group;
}

void more_ling3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr uint32_t kSigmoid = 2;
  const auto key = [&](const char* name) { return fmt::format("{}{}", prefix, name); };
  set_latent(config, prefix, to);
  to.set(key("expert_gating_func"), kSigmoid);
  const JsonView sums = config[config["norm_topk_prob"] ? "norm_topk_prob" : "moe_renormalize"];
  to.set(key("expert_weights_norm"), sums.boolean_or(true));
  const char* const wide = config["moe_shared_expert_intermediate_size"]
                               ? "moe_shared_expert_intermediate_size"
                               : "moe_intermediate_size";
  set_size(prefix, "expert_shared_feed_forward_length",
           config["num_shared_experts"].integer(0, 1024) * size_of(config, wide), to);
  // In transformers head_dim is that of the rotated part.
  set_size(prefix, "kda.head_dim",
           size_of(config, config["linear_head_dim"] ? "linear_head_dim" : "head_dim"), to);
  to.set(key("kda.safe_gate"), true);
  to.set(key("kda.gate_lower_bound"),
         static_cast<float>(config["kda_lower_bound"].number(-1e3, 0)));
  std::vector<int32_t> key_heads;
  for (int64_t i = 0; i < config["num_hidden_layers"].integer(1, 4096); ++i)
    key_heads.push_back(recurs_in_ling3(config, i) ? 0 : 1);
  to.set(key("attention.head_count_kv"), key_heads);
  set_limits(config, "expert_swiglu_limit_list", prefix, "swiglu_clamp_exp", to);
  set_limits(config, "share_expert_swiglu_limit_list", prefix, "swiglu_clamp_shexp", to);
}

bool has_window_in_dots3(const JsonView& config, int64_t layer) {
  const std::vector<JsonView> kinds = config["layer_types"].items();
  return layer >= 0 && layer < static_cast<int64_t>(kinds.size()) &&
         kinds[static_cast<size_t>(layer)].string() == "sliding_attention";
}

// Layers with windows have heads, latent rows and a rotation of their own.
void more_dots3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr uint32_t kSigmoid = 2;
  const auto key = [&](const char* name) { return fmt::format("{}{}", prefix, name); };
  set_latent(config, prefix, to);
  to.set(key("expert_gating_func"), kSigmoid);
  to.set(key("expert_weights_norm"), config["norm_topk_prob"].boolean_or(true));
  const int64_t wide = size_of(config, "moe_intermediate_size");
  for (const char* name :
       {"moe_shared_expert_intermediate_size", "shared_experts_intermediate_size"})
    if (const int64_t own = config[name].integer_or(wide); own != wide)
      refuse(fmt::format("{} is {}; Prism's dots3note has that of moe_intermediate_size, {}", name,
                         own, wide));
  for (const char* name : {"q_lora_rank", "qk_rope_head_dim"})
    if (windowed_size(config, name) != size_of(config, name))
      refuse(fmt::format("{} of layers with windows is {}; Prism's dots3note has {} in all layers",
                         name, windowed_size(config, name), size_of(config, name)));
  const int64_t heads = config["num_attention_heads"].integer(1, 1 << 16),
                rotated = size_of(config, "qk_rope_head_dim"),
                latent = windowed_size(config, "kv_lora_rank");
  std::vector<bool> windowed, indexed_layers;
  std::vector<int32_t> all_heads;
  for (const JsonView& each : of_layers(config, "layer_types")) {
    windowed.push_back(each.string() == "sliding_attention");
    indexed_layers.push_back(!windowed.back());
    all_heads.push_back(static_cast<int32_t>(
        windowed.back() ? windowed_size(config, "num_attention_heads") : heads));
  }
  to.set(key("attention.head_count"), all_heads);
  to.set(key("attention.sliding_window_pattern"), windowed);
  to.set(key("attention.indexer.types"), indexed_layers);
  set_size(prefix, "attention.sliding_window",
           size_of(config, config["sliding_window"] ? "sliding_window" : "sliding_window_size"),
           to);
  set_size(prefix, "attention.kv_lora_rank_swa", latent, to);
  set_size(prefix, "attention.key_length_swa", latent + rotated, to);
  set_size(prefix, "attention.value_length_swa", latent, to);
  set_size(prefix, "attention.key_length_mla_swa",
           windowed_size(config, "qk_nope_head_dim") + rotated, to);
  set_size(prefix, "attention.value_length_mla_swa", windowed_size(config, "v_head_dim"), to);
  const JsonView rotations = config["rope_parameters"];
  const JsonView indexed =
      rotations[rotations["indexed_attention"] ? "indexed_attention" : "full_attention"];
  const auto set_base = [&](const char* name, const JsonView& of, const char* outside) {
    if (const std::string kind = of["rope_type"].string_or("default"); kind != "default")
      refuse(
          fmt::format("rope_type is \"{}\"; Prism's dots3note has \"default\"", printable(kind)));
    const JsonView base = of ? of["rope_theta"] : config[outside];
    to.set(key(name), static_cast<float>(base.number(1e-3, 1e12)));
  };
  set_base("rope.freq_base", indexed, "rope_theta");
  set_base("rope.freq_base_swa", rotations["sliding_attention"], "swa_rope_theta");
  if (config["rope_scaling"]) refuse("rope_scaling is there; Prism's dots3note has none");
  int64_t dense = config["first_k_dense_replace"].integer_or(0, 0, 4096);
  for (const JsonView& each : config["mlp_layer_types"].items()) {
    if (each.string() != "dense") break;
    ++dense;
  }
  set_size(prefix, "leading_dense_block_count", dense, to);
}

// Norms of latent rows are scaled by what the rank is short of the width.
std::vector<RowFactor> dots3_factors(const JsonView& config, std::string_view to, int64_t layer) {
  const bool is_query = to == "blk.{}.attn_q_a_norm.weight";
  if ((!is_query && to != "blk.{}.attn_kv_a_norm.weight") ||
      !config["apply_mla_qkv_lora_rescale"].boolean_or(true))
    return {};
  const int64_t rank = is_query                             ? size_of(config, "q_lora_rank")
                       : has_window_in_dots3(config, layer) ? windowed_size(config, "kv_lora_rank")
                                                            : size_of(config, "kv_lora_rank");
  return {{1, std::sqrt(static_cast<double>(size_of(config, "hidden_size")) /
                        static_cast<double>(rank))}};
}

}  // namespace

std::vector<HfArchitecture> hf_latent_mixtures() {
  return {
      {.name = "BailingMoeV3ForCausalLM",
       .gguf = "bailingmoe3",
       .tensors = {kEnds, kNorms, kLing3, kLing3Latent, kLing3Delta, kFeedForward, kExperts},
       .config = {kSizes, kDecoder, kLing3Sizes},
       .expected = {kSilu,
                    {"kda_safe_gate", {"true"}},
                    {"no_kda_lora", {"true"}},
                    {"gated_attention_proj_granularity_type", {R"("head_wise")"}},
                    {"rope_interleave", {"true"}},
                    {"score_function", {R"("sigmoid")"}}},
       .more = more_ling3,
       .is_other = recurs_in_ling3},
      {.name = "Dots3NoteForCausalLM",
       .gguf = "dots3note",
       .tensors = {kEnds, kNorms, kDots3, kFeedForward, kExperts},
       .config = {kDots3Sizes},
       .expected = {kSilu,
                    {"use_dsa", {"true"}},
                    {"n_group", {"1"}},
                    {"topk_group", {"1"}},
                    {"topk_method", {R"("noaux_tc")"}},
                    {"scoring_func", {R"("sigmoid")"}},
                    {"k_rope_only_layernorm", {"true"}},
                    {"use_dynamic_rsf", {"false"}},
                    {"attention_gate_type", {R"("headwise")"}},
                    {"swa_attention_gate_type", {R"("headwise")"}}},
       .has_windows = true,
       .more = more_dots3,
       .factors = dots3_factors,
       .is_other = has_window_in_dots3},
  };
}

}  // namespace prism::llm
