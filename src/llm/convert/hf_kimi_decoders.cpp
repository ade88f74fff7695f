// The Hugging Face decoders of Kimi with layers of the delta rule: Kimi Linear, Kimi K3.
#include "llm/convert/hf_latent_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kKimiDelta[] = {
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"model.layers.{}.self_attn.f_a_proj.weight", "blk.{}.ssm_f_a.weight"},
    {"model.layers.{}.self_attn.f_b_proj.weight", "blk.{}.ssm_f_b.weight"},
    {"model.layers.{}.self_attn.b_proj.weight", "blk.{}.ssm_beta.weight"},
    {"model.layers.{}.self_attn.dt_bias", "blk.{}.ssm_dt.bias"},
    {"model.layers.{}.self_attn.o_norm.weight", "blk.{}.ssm_norm.weight"},
};
constexpr TensorRule kKimiLinear[] = {
    {"model.layers.{}.self_attn.q_conv1d.weight", "blk.{}.ssm_conv1d_q.weight", squeezed},
    {"model.layers.{}.self_attn.k_conv1d.weight", "blk.{}.ssm_conv1d_k.weight", squeezed},
    {"model.layers.{}.self_attn.v_conv1d.weight", "blk.{}.ssm_conv1d_v.weight", squeezed},
    {"model.layers.{}.self_attn.g_a_proj.weight", "blk.{}.ssm_g_a.weight"},
    {"model.layers.{}.self_attn.g_b_proj.weight", "blk.{}.ssm_g_b.weight"},
    {"model.layers.{}.self_attn.A_log", "blk.{}.ssm_a", negative_exp},
};
constexpr TensorRule kKimiExperts[] = {
    // transformers gives dense layers this name, too.
    {"model.layers.{}.block_sparse_moe.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.block_sparse_moe.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.block_sparse_moe.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.block_sparse_moe.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.block_sparse_moe.shared_experts.gate_proj.weight",
     "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.block_sparse_moe.shared_experts.up_proj.weight",
     "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.block_sparse_moe.shared_experts.down_proj.weight",
     "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kKimi3[] = {
    {"model.layers.{}.self_attn.q_conv1d.weight", "blk.{}.ssm_conv1d_q.weight"},
    {"model.layers.{}.self_attn.k_conv1d.weight", "blk.{}.ssm_conv1d_k.weight"},
    {"model.layers.{}.self_attn.v_conv1d.weight", "blk.{}.ssm_conv1d_v.weight"},
    {"model.layers.{}.self_attn.A_log", "blk.{}.ssm_a", heads_negative_exp},
    {"model.layers.{}.self_attn.g_proj.weight", "blk.{}.ssm_g.weight", none, 0, 1,
     RuleLayers::others},
    {"model.layers.{}.self_attn.g_proj.weight", "blk.{}.attn_gate.weight", none, 0, 1,
     RuleLayers::usual},
    {"model.layers.{}.self_attention_res_norm.weight", "blk.{}.attn_res_score.weight", product, 0,
     2},
    {"model.layers.{}.self_attention_res_proj.weight", "blk.{}.attn_res_score.weight", product, 1,
     2},
    {"model.layers.{}.mlp_res_norm.weight", "blk.{}.ffn_res_score.weight", product, 0, 2},
    {"model.layers.{}.mlp_res_proj.weight", "blk.{}.ffn_res_score.weight", product, 1, 2},
    {"model.output_attn_res_norm.weight", "output_res_score.weight", product, 0, 2},
    {"model.output_attn_res_proj.weight", "output_res_score.weight", product, 1, 2},
};
constexpr TensorRule kKimi3Experts[] = {
    {"model.layers.{}.block_sparse_moe.routed_expert_down_proj.weight",
     "blk.{}.ffn_routed_down.weight"},
    {"model.layers.{}.block_sparse_moe.routed_expert_up_proj.weight",
     "blk.{}.ffn_routed_up.weight"},
    {"model.layers.{}.block_sparse_moe.routed_expert_norm.weight", "blk.{}.ffn_routed_norm.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w1.weight_packed", "blk.{}.ffn_gate_exps.weight",
     row_mxfp4},
    {"model.layers.{}.block_sparse_moe.experts.{}.w3.weight_packed", "blk.{}.ffn_up_exps.weight",
     row_mxfp4},
    {"model.layers.{}.block_sparse_moe.experts.{}.w2.weight_packed", "blk.{}.ffn_down_exps.weight",
     row_mxfp4},
    {"model.layers.{}.block_sparse_moe.experts.{}.w1.weight_scale", ""},  // go with the blocks
    {"model.layers.{}.block_sparse_moe.experts.{}.w3.weight_scale", ""},
    {"model.layers.{}.block_sparse_moe.experts.{}.w2.weight_scale", ""},
};

// --- hyperparameters
constexpr ConfigRule kKimiMoe[] = {
    {"num_experts", "expert_count"},
    {"num_experts_per_token", "expert_used_count"},
    {"num_shared_experts", "expert_shared_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"first_k_dense_replace", "leading_dense_block_count"},
    {"routed_scaling_factor", "expert_weights_scale", number},
    {"num_expert_group", "expert_group_count", integer, false},
    {"topk_group", "expert_group_used_count", integer, false},
};
constexpr ConfigRule kKimi3Sizes[] = {
    {"routed_expert_hidden_size", "expert_latent_length", integer, false},
    {"activation_situ_beta", "activation.situ_beta", number, false},
    {"activation_situ_linear_beta", "activation.situ_linear_beta", number, false},
    {"attn_res_block_size", "attn_res.block_size", integer, false},
};

// --- what rows of the table cannot say
// Layers of the delta rule have no heads of keys. Kimi's own files have their settings in a part of
// their own, with layers counted from 1; transformers writes them beside the others.
void more_kimi_linear(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr uint32_t kSigmoid = 2;
  set_latent(config, prefix, to);
  to.set(fmt::format("{}expert_gating_func", prefix), kSigmoid);
  to.set(fmt::format("{}expert_weights_norm", prefix), config["moe_renormalize"].boolean_or(true));
  const JsonView own = config["linear_attn_config"];
  const auto size = [&](const char* in_own, const char* outside) {
    return own ? own[in_own].integer(1, 1 << 14) : config[outside].integer(1, 1 << 14);
  };
  const int64_t heads = size("num_heads", "linear_num_heads");
  if (heads != config["num_attention_heads"].integer(1, 1 << 16))
    refuse(
        fmt::format("layers of the delta rule have {} heads; Prism's Kimi has as many in "
                    "all layers",
                    heads));
  set_size(prefix, "kda.head_dim", size("head_dim", "linear_head_dim"), to);
  set_size(prefix, "ssm.conv_kernel", size("short_conv_kernel_size", "linear_conv_kernel_dim"), to);
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  std::vector<int32_t> key_heads;
  if (own) {
    key_heads.resize(static_cast<size_t>(layers));
    for (const JsonView& each : own["full_attn_layers"].items())
      key_heads[static_cast<size_t>(each.integer(1, layers) - 1)] = 1;
  } else {
    for (const JsonView& each : config["layer_types"].items())
      key_heads.push_back(each.string() == "full_attention" ? 1 : 0);
    if (key_heads.size() != static_cast<size_t>(layers))
      refuse(fmt::format("layer_types has {} of {} layers", key_heads.size(), layers));
  }
  to.set(fmt::format("{}attention.head_count_kv", prefix), key_heads);
}

// The layers of the delta rule are those that full_attn_layers does not name.
bool recurs_in_kimi3(const JsonView& config, int64_t layer) {
  for (const JsonView& each : config["linear_attn_config"]["full_attn_layers"].items())
    if (each.integer(1, 4096) == layer + 1) return false;
  return true;
}

void more_kimi3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const JsonView own = config["linear_attn_config"];
  if (!own) refuse("linear_attn_config is not there; Prism's kimi-k3 needs it");
  more_kimi_linear(config, prefix, to);
  if (!own["use_full_rank_gate"].boolean_or(true))
    refuse("use_full_rank_gate is false; Prism's kimi-k3 has gates of one matrix");
  if (const JsonView fastest = own["gate_lower_bound"])
    to.set(fmt::format("{}kda.gate_lower_bound", prefix),
           static_cast<float>(fastest.number(-1e3, 0)));
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  for (const JsonView& each : own["kda_layers"].items())
    if (!recurs_in_kimi3(config, each.integer(1, layers) - 1))
      refuse(fmt::format("kda_layers and full_attn_layers both name layer {}", each.integer()));
}

}  // namespace

std::vector<HfArchitecture> hf_kimi_decoders() {
  return {
      {.name = "KimiLinearForCausalLM",
       .gguf = "kimi-linear",
       .tensors = {kEnds, kNorms, kLatent, kKimiDelta, kKimiLinear, kFeedForward, kMixtralExperts,
                   kKimiExperts},
       .config = {kSizes, kDecoder, kKimiMoe, kLatentSizes},
       .expected = {kSilu,
                    {"mla_use_nope", {"true"}},
                    {"moe_renormalize", {"true"}},
                    {"moe_router_activation_func", {R"("sigmoid")"}},
                    {"moe_layer_freq", {"1"}}},
       .more = more_kimi_linear},
      {.name = "KimiK3ForCausalLM",
       .gguf = "kimi-k3",
       .tensors = {kEnds, kNorms, kLatent, kKimiDelta, kKimi3, kFeedForward, kMixtralExperts,
                   kKimiExperts, kKimi3Experts},
       .config = {kSizes, kDecoder, kKimiMoe, kLatentSizes, kKimi3Sizes},
       .expected = {{"hidden_act", {R"("situ")"}},
                    {"mla_use_nope", {"true"}},
                    {"mla_use_output_gate", {"true"}},
                    {"latent_moe_use_norm", {"true"}},
                    {"topk_method", {R"("noaux_tc")"}},
                    {"num_expert_group", {"1"}},
                    {"moe_router_activation_func", {R"("sigmoid")"}},
                    {"moe_layer_freq", {"1"}}},
       .more = more_kimi3,
       .has_mxfp4 = true,
       .is_other = recurs_in_kimi3},
  };
}

}  // namespace prism::llm
