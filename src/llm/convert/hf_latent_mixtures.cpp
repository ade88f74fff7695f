// The Hugging Face decoders with experts and layers of latent attention among others: Ling 3.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

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
     RuleLayers::recurrent},
    {"model.layers.{}.attention.g_proj.weight", "blk.{}.attn_gate.weight", none, 0, 1,
     RuleLayers::attention},
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
       .recurs = recurs_in_ling3},
  };
}

}  // namespace prism::llm
