// The rules that several Hugging Face architectures share.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "llm/convert/hf_architectures.h"

namespace prism::llm {

// Rows of the table, beside those of hf_architectures.cpp.
std::vector<HfArchitecture> hf_encoders();
std::vector<HfArchitecture> hf_bert_relatives();
std::vector<HfArchitecture> hf_embedding_decoders();
std::vector<HfArchitecture> hf_other_decoders();
std::vector<HfArchitecture> hf_gpt_decoders();
std::vector<HfArchitecture> hf_expert_decoders();
std::vector<HfArchitecture> hf_recurrent_decoders();
std::vector<HfArchitecture> hf_delta_decoders();
std::vector<HfArchitecture> hf_gemma_decoders();
std::vector<HfArchitecture> hf_routed_decoders();
std::vector<HfArchitecture> hf_diffusion_decoders();
std::vector<HfArchitecture> hf_rwkv_decoders();
std::vector<HfArchitecture> hf_mixture_decoders();
std::vector<HfArchitecture> hf_mixture_variants();
std::vector<HfArchitecture> hf_latent_mixtures();
std::vector<HfArchitecture> hf_llama_variants();
std::vector<HfArchitecture> hf_plamo_decoders();
std::vector<HfArchitecture> hf_gpt_variants();
std::vector<HfArchitecture> hf_named_decoders();
std::span<const HfAlias> hf_aliases();
std::vector<HfArchitecture> hf_seeing_decoders();
// Qwen3's decoder with a matrix for scores.
std::vector<HfArchitecture> hf_ranking_decoders(std::span<const HfArchitecture> decoders);
// Those of `decoders` that are also used without their output matrix, for embeddings.
std::vector<HfArchitecture> hf_bare_decoders(std::span<const HfArchitecture> decoders);
std::vector<HfArchitecture> hf_kimi_decoders();
std::vector<HfArchitecture> hf_grok_decoders();
std::vector<HfArchitecture> hf_mimo_decoders();

// --- tensors
inline constexpr TensorRule kEnds[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight"},
    {"model.layers.{}.self_attn.rotary_emb.inv_freq", ""},  // computed from the base
    {"model.rotary_emb.inv_freq", ""},
};
inline constexpr TensorRule kNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
};
inline constexpr TensorRule kNormBiases[] = {
    {"model.norm.bias", "output_norm.bias"},
    {"model.layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias"},
    {"model.layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias"},
};
inline constexpr TensorRule kPostNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
};
inline constexpr TensorRule kQueryKey[] = {
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias"},
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias"},
};
inline constexpr TensorRule kAdjacentQueryKey[] = {
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", TensorChange::rotary},
    {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias", TensorChange::rotary},
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", TensorChange::rotary},
    {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias", TensorChange::rotary},
};
inline constexpr TensorRule kValueOutput[] = {
    {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias"},
};
inline constexpr TensorRule kFeedForward[] = {
    {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.gate_proj.bias", "blk.{}.ffn_gate.bias"},
    {"model.layers.{}.mlp.up_proj.bias", "blk.{}.ffn_up.bias"},
    {"model.layers.{}.mlp.down_proj.bias", "blk.{}.ffn_down.bias"},
};
inline constexpr TensorRule kFusedFeedForward[] = {
    {"model.layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
};
inline constexpr TensorRule kExperts[] = {
    {"model.layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.experts.{}.gate_proj.weight", "blk.{}.ffn_gate_exps.weight"},
    {"model.layers.{}.mlp.experts.{}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
    {"model.layers.{}.mlp.experts.{}.down_proj.weight", "blk.{}.ffn_down_exps.weight"},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight",
     TensorChange::fused_gate},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_up_exps.weight",
     TensorChange::fused_up},
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight",
     TensorChange::fused_down},
};

inline constexpr TensorRule kSeedNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
};
inline constexpr TensorRule kMixtralExperts[] = {
    {"model.layers.{}.block_sparse_moe.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w1.weight", "blk.{}.ffn_gate_exps.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w3.weight", "blk.{}.ffn_up_exps.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w2.weight", "blk.{}.ffn_down_exps.weight"},
};

inline constexpr TensorRule kSharedExpert[] = {
    {"model.layers.{}.mlp.shared_expert.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_expert.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_expert.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
    {"model.layers.{}.mlp.shared_expert_gate.weight", "blk.{}.ffn_gate_inp_shexp.weight"},
};
inline constexpr TensorRule kGraniteExperts[] = {
    {"model.layers.{}.block_sparse_moe.router.layer.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.input_linear.weight", "blk.{}.ffn_gate_up_exps.weight"},
    {"model.layers.{}.block_sparse_moe.output_linear.weight", "blk.{}.ffn_down_exps.weight"},
};

inline constexpr TensorRule kMambaBeside[] = {
    {"model.layers.{}.mamba.A_log", "blk.{}.ssm_a", TensorChange::negative_exp},
    {"model.layers.{}.mamba.D", "blk.{}.ssm_d"},
    {"model.layers.{}.mamba.conv1d.weight", "blk.{}.ssm_conv1d.weight", TensorChange::squeezed},
    {"model.layers.{}.mamba.conv1d.bias", "blk.{}.ssm_conv1d.bias"},
    {"model.layers.{}.mamba.in_proj.weight", "blk.{}.ssm_in.weight"},
    {"model.layers.{}.mamba.out_proj.weight", "blk.{}.ssm_out.weight"},
    {"model.layers.{}.mamba.dt_bias", "blk.{}.ssm_dt.bias"},
    {"model.layers.{}.mamba.norm.weight", "blk.{}.ssm_norm.weight", TensorChange::grouped},
};
inline constexpr TensorRule kPreNorms[] = {
    {"model.final_layernorm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.pre_ff_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.feed_forward.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.feed_forward.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.feed_forward.down_proj.weight", "blk.{}.ffn_down.weight"},
};
// The heads that guess masked tokens, which embeddings do not need.
inline constexpr TensorRule kBertMask[] = {
    {"cls.predictions.bias", ""},
    {"cls.predictions.transform.dense.weight", ""},
    {"cls.predictions.transform.dense.bias", ""},
    {"cls.predictions.transform.LayerNorm.weight", ""},
    {"cls.predictions.transform.LayerNorm.bias", ""},
    {"cls.predictions.transform.LayerNorm.gamma", ""},
    {"cls.predictions.transform.LayerNorm.beta", ""},
    {"cls.predictions.decoder.weight", ""},
    {"cls.predictions.decoder.bias", ""},
    {"cls.seq_relationship.weight", ""},
    {"cls.seq_relationship.bias", ""},
};

// --- hyperparameters
inline constexpr ConfigRule kSizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"intermediate_size", "feed_forward_length"},
};
inline constexpr ConfigRule kDecoder[] = {
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", ConfigKind::number},
    {"num_key_value_heads", "attention.head_count_kv", ConfigKind::integer, false},
};
inline constexpr ConfigRule kGraniteScales[] = {
    {"embedding_multiplier", "embedding_scale", ConfigKind::number},
    {"residual_multiplier", "residual_scale", ConfigKind::number},
    {"attention_multiplier", "attention.scale", ConfigKind::number},
    {"logits_scaling", "logit_scale", ConfigKind::number},
};
inline constexpr ConfigRule kWindow[] = {
    {"sliding_window", "attention.sliding_window", ConfigKind::integer}};
inline constexpr ConfigRule kQwenMoe[] = {
    {"num_experts", "expert_count", ConfigKind::integer, false},
    {"num_local_experts", "expert_count", ConfigKind::integer, false},  // the same, in newer files
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
};
inline constexpr ConfigRule kMixtral[] = {
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
};

inline constexpr ConfigRule kMambaBesideSizes[] = {
    {"mamba_d_conv", "ssm.conv_kernel"},
    {"mamba_d_state", "ssm.state_size"},
    {"mamba_n_groups", "ssm.group_count"},
    {"mamba_n_heads", "ssm.time_step_rank"},
};

inline const Expectation kSilu{"hidden_act", {R"("silu")", R"("swish")"}};

// --- checks that need more than one value
[[noreturn]] void refuse(const std::string& what);

int64_t head_length(const JsonView& config);
int64_t rotary_length(const JsonView& config);  // the part of a head that may be rotated

inline int64_t size_of(const JsonView& config, const char* key) {
  return config[key].integer(1, 1 << 20);
}

inline void set_size(std::string_view prefix, const char* key, int64_t value, GgufWriter& to) {
  to.set(fmt::format("{}{}", prefix, key), static_cast<uint32_t>(value));
}

// The layers with a window, or without rotation, must be the ones that Prism assumes.
void check_layers(const JsonView& config, const char* key, const auto& is_expected) {
  int64_t layer = 0;
  for (const JsonView& each : config[key].items()) {
    if (!is_expected(layer, each))
      refuse(fmt::format("{} has {} for layer {}; Prism's layers have another pattern", key,
                         printable(each.json().dump()), layer));
    ++layer;
  }
}

// Of encoders: they see whole texts. more_bert also sets the number of token types.
void more_encoder(const JsonView& config, std::string_view prefix, GgufWriter& to);
void more_bert(const JsonView& config, std::string_view prefix, GgufWriter& to);

// For models that rotate a part of a head by default, and not all the same one.
void check_rotated_part(const JsonView& config, std::string_view prefix, GgufWriter& to);

// Sets which layers have a window, by layer_types, and the base of their rotation; returns them.
std::vector<bool> set_windowed_layers(const JsonView& config, std::string_view prefix,
                                      GgufWriter& to);

// Sets which layers have a window and which are rotated, by layer_rope_theta.
void set_granite_windows(const JsonView& config, std::string_view prefix, GgufWriter& to);

// A size of layers with windows, which may differ from that of the others.
int64_t windowed_size(const JsonView& config, const std::string& key);

// Sets the sizes of latent attention, whose cache is that of one head.
void set_latent(const JsonView& config, std::string_view prefix, GgufWriter& to);

// The values of a list with one for each layer. Behind them may be those of layers that propose.
std::vector<JsonView> of_layers(const JsonView& config, const char* key);

// Sets the limits of the activations of each layer, if config.json has them; null: none.
void set_limits(const JsonView& config, const char* from, std::string_view prefix,
                const char* to_key, GgufWriter& to);

// Every period-th layer sees all positions, the others a window.
void check_windows(const JsonView& config, int64_t period);

}  // namespace prism::llm
