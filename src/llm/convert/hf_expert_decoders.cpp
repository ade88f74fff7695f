// The Hugging Face decoders with experts beyond Mixtral's and Qwen's: shared ones, other scores,
// the latent attention of DeepSeek, the blocks of gpt-oss.
#include "llm/convert/hf_latent_rules.h"

namespace prism::llm {

// The cache holds the latent elements and those rotated, as if of one head.
void set_latent(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const auto size = [&](const char* key) {
    return static_cast<uint32_t>(config[key].integer(1, 1 << 14));
  };
  const uint32_t latent = size("kv_lora_rank"), rotated = size("qk_rope_head_dim");
  to.set(fmt::format("{}attention.head_count_kv", prefix), uint32_t{1});
  to.set(fmt::format("{}attention.key_length", prefix), latent + rotated);
  to.set(fmt::format("{}attention.value_length", prefix), latent);
  to.set(fmt::format("{}attention.key_length_mla", prefix), size("qk_nope_head_dim") + rotated);
}

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kDeepSeekExperts[] = {
    {"model.layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kIndexer[] = {
    {"model.layers.{}.self_attn.indexer.k_norm.weight", "blk.{}.indexer.k_norm.weight"},
    {"model.layers.{}.self_attn.indexer.k_norm.bias", "blk.{}.indexer.k_norm.bias"},
    {"model.layers.{}.self_attn.indexer.weights_proj.weight", "blk.{}.indexer.proj.weight"},
    {"model.layers.{}.self_attn.indexer.wk.weight", "blk.{}.indexer.attn_k.weight"},
    {"model.layers.{}.self_attn.indexer.wq_b.weight", "blk.{}.indexer.attn_q_b.weight"},
};
constexpr TensorRule kGlmMoeNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
};
constexpr TensorRule kErnieBias[] = {
    {"model.layers.{}.mlp.moe_statics.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
};
constexpr TensorRule kHunyuanExperts[] = {
    {"model.layers.{}.self_attn.query_layernorm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.key_layernorm.weight", "blk.{}.attn_k_norm.weight"},
    {"model.layers.{}.mlp.gate.wg.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.shared_mlp.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_mlp.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_mlp.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kMiniMaxBias[] = {
    {"model.layers.{}.block_sparse_moe.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
};
constexpr TensorRule kGptOss[] = {
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"},
    {"model.layers.{}.mlp.router.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.router.bias", "blk.{}.ffn_gate_inp.bias"},
    {"model.layers.{}.mlp.experts.gate_up_proj_bias", "blk.{}.ffn_gate_exps.bias", even_columns},
    {"model.layers.{}.mlp.experts.gate_up_proj_bias", "blk.{}.ffn_up_exps.bias", odd_columns},
    {"model.layers.{}.mlp.experts.down_proj_bias", "blk.{}.ffn_down_exps.bias"},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight", even_transposed},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_up_exps.weight", odd_transposed},
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", transposed},
    {"model.layers.{}.mlp.experts.gate_up_proj_blocks", "blk.{}.ffn_gate_exps.weight", even_mxfp4},
    {"model.layers.{}.mlp.experts.gate_up_proj_blocks", "blk.{}.ffn_up_exps.weight", odd_mxfp4},
    {"model.layers.{}.mlp.experts.down_proj_blocks", "blk.{}.ffn_down_exps.weight", all_mxfp4},
    {"model.layers.{}.mlp.experts.gate_up_proj_scales", ""},  // go with the blocks
    {"model.layers.{}.mlp.experts.down_proj_scales", ""},
};

// --- hyperparameters
constexpr ConfigRule kDeepSeekMoe[] = {
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"n_shared_experts", "expert_shared_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"first_k_dense_replace", "leading_dense_block_count"},
    {"routed_scaling_factor", "expert_weights_scale", number},
};
constexpr ConfigRule kSolar[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"intermediate_size", "feed_forward_length", integer, false},
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"n_shared_experts", "expert_shared_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"first_k_dense_replace", "leading_dense_block_count", integer, false},
    {"routed_scaling_factor", "expert_weights_scale", number},
};
constexpr ConfigRule kGroups[] = {
    {"n_group", "expert_group_count", integer, false},
    {"topk_group", "expert_group_used_count", integer, false},
};
constexpr ConfigRule kIndexerSizes[] = {
    {"index_n_heads", "attention.indexer.head_count"},
    {"index_head_dim", "attention.indexer.key_length"},
    {"index_topk", "attention.indexer.top_k"},
};
constexpr ConfigRule kErnieMoe[] = {
    {"moe_num_experts", "expert_count"},
    {"moe_k", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"moe_layer_start_index", "leading_dense_block_count"},
    {"moe_layer_interval", "interleave_moe_layer_step", integer, false},
};

// --- what rows of the table cannot say
constexpr uint32_t kSoftmax = 1, kSigmoid = 2;  // kinds of scores, in files

void set_scores(const JsonView& config, std::string_view prefix, uint32_t kind, GgufWriter& to) {
  to.set(fmt::format("{}expert_gating_func", prefix), kind);
  to.set(fmt::format("{}expert_weights_norm", prefix), config["norm_topk_prob"].boolean_or(true));
}

void more_sigmoid(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_scores(config, prefix, kSigmoid, to);
}

void more_glm4_moe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  check_rotated_part(config, prefix, to);
  set_scores(config, prefix, kSigmoid, to);
}

void more_deepseek_v2(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_latent(config, prefix, to);
  set_scores(config, prefix, kSoftmax, to);
}

// DeepSeek without experts. llama.cpp needs their keys too.
void more_youtu(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_latent(config, prefix, to);
  set_size(prefix, "leading_dense_block_count", config["num_hidden_layers"].integer(1, 4096), to);
  set_size(prefix, "expert_feed_forward_length", config["intermediate_size"].integer(1, 1 << 24),
           to);
  set_size(prefix, "expert_shared_count", 0, to);
}

void more_deepseek_v3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_latent(config, prefix, to);
  set_scores(config, prefix, kSigmoid, to);
}

// Layers without an indexer of their own see the keys that the last one chose.
void more_glm_dsa(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_deepseek_v3(config, prefix, to);
  std::vector<int32_t> own;
  for (const JsonView& each : config["indexer_types"].items())
    own.push_back(each.string() == "full" ? 1 : 0);
  if (!own.empty()) to.set(fmt::format("{}attention.indexer.types", prefix), own);
}

void more_mistral4(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_deepseek_v2(config, prefix, to);
  const JsonView settings = config[config["rope_parameters"] ? "rope_parameters" : "rope_scaling"];
  if (!settings["llama_4_scaling_beta"]) return;
  to.set(fmt::format("{}attention.temperature_scale", prefix),
         static_cast<float>(settings["llama_4_scaling_beta"].number(0, 100)));
  to.set(fmt::format("{}attention.temperature_length", prefix),
         static_cast<uint32_t>(settings["original_max_position_embeddings"].integer(1, 1 << 30)));
}

void more_minicpm3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const auto size = [&](const char* key) { return config[key].integer(1, 1 << 14); };
  set_size(prefix, "attention.key_length", size("qk_nope_head_dim") + size("qk_rope_head_dim"), to);
  set_size(prefix, "attention.value_length", size("v_head_dim"), to);
}

void more_ernie_moe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  if (const int64_t last = config["moe_layer_end_index"].integer_or(-1);
      last != -1 && last != layers - 1)
    refuse(fmt::format("moe_layer_end_index is {}; Prism's ERNIE has experts up to its last layer",
                       last));
  to.set(fmt::format("{}expert_shared_feed_forward_length", prefix),
         static_cast<uint32_t>(config["moe_num_shared_experts"].integer_or(0, 0, 1024) *
                               config["moe_intermediate_size"].integer(1, 1 << 20)));
}

// A number for all layers, or a list with the same one for each.
int64_t same_for_all(const JsonView& config, const char* key, int64_t most) {
  const JsonView value = config[key];
  if (!value.json().is_array()) return value.integer(1, most);
  int64_t all = 0;
  for (const JsonView& each : value.items()) {
    if (all != 0 && each.integer(1, most) != all)
      refuse(fmt::format("{} is {}; Prism's Hunyuan has the same number in each layer", key,
                         printable(value.json().dump())));
    all = each.integer(1, most);
  }
  return all;
}

void more_hunyuan_moe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}expert_count", prefix),
         static_cast<uint32_t>(config["num_experts"].integer(1, 1024)));
  to.set(fmt::format("{}expert_used_count", prefix),
         static_cast<uint32_t>(same_for_all(config, "moe_topk", 1024)));
  const int64_t shared =
      config["num_shared_expert"] ? same_for_all(config, "num_shared_expert", 64) : 1;
  to.set(fmt::format("{}expert_shared_feed_forward_length", prefix),
         static_cast<uint32_t>(shared * config["intermediate_size"].integer(1, 1 << 20)));
}

void more_gpt_oss(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  check_windows(config, 2);
  const char* const used =
      config["num_experts_per_tok"] ? "num_experts_per_tok" : "experts_per_token";
  to.set(fmt::format("{}expert_used_count", prefix),
         static_cast<uint32_t>(config[used].integer(1, 1024)));
  to.set(fmt::format("{}expert_count", prefix),
         static_cast<uint32_t>(config["num_local_experts"].integer(1, 1024)));
  to.set(fmt::format("{}expert_feed_forward_length", prefix),
         static_cast<uint32_t>(config["intermediate_size"].integer(1, 1 << 20)));
}

}  // namespace

std::vector<HfArchitecture> hf_expert_decoders() {
  const std::vector<std::span<const TensorRule>> deepseek = {
      kEnds, kNorms, kLatent, kFeedForward, kExperts, kDeepSeekExperts};
  return {
      {.name = "GptOssForCausalLM",
       .gguf = "gpt-oss",
       .tensors = {kEnds, kSeedNorms, kQueryKey, kValueOutput, kGptOss},
       .config = {kSizes, kDecoder, kWindow},
       .expected = {kSilu, {"swiglu_limit", {"7.0"}}, {"swiglu_alpha", {"1.702"}}},
       .has_windows = true,
       .more = more_gpt_oss,
       .yarn = {.rounds_bounds = false},
       .has_mxfp4 = true},
      {.name = "DeepseekV2ForCausalLM",
       .gguf = "deepseek2",
       .tensors = deepseek,
       .config = {kSizes, kDecoder, kDeepSeekMoe, kLatentSizes},
       .expected = {kSilu,
                    {"topk_method", {R"("greedy")"}},
                    {"scoring_func", {R"("softmax")"}},
                    {"moe_layer_freq", {"1"}}},
       .more = more_deepseek_v2,
       .yarn = {.has_multipliers = true}},
      {.name = "DeepseekV3ForCausalLM",
       .gguf = "deepseek2",
       .tensors = deepseek,
       .config = {kSizes, kDecoder, kDeepSeekMoe, kGroups, kLatentSizes},
       .expected = {kSilu,
                    {"topk_method", {R"("noaux_tc")"}},
                    {"scoring_func", {R"("sigmoid")"}},
                    {"rope_interleave", {"true"}},
                    {"moe_layer_freq", {"1"}}},
       .more = more_deepseek_v3,
       .yarn = {.has_multipliers = true}},
      {.name = "YoutuForCausalLM",
       .gguf = "deepseek2",
       .tensors = {kEnds, kNorms, kLatent, kFeedForward},
       .config = {kSizes, kDecoder, kLatentSizes},
       .expected = {kSilu, {"rope_interleave", {"true"}}, {"n_routed_experts", {}}},
       .more = more_youtu,
       .yarn = {.has_multipliers = true}},
      {.name = "DeepseekV32ForCausalLM",
       .gguf = "deepseek32",
       .tensors = {kEnds, kNorms, kLatent, kFeedForward, kExperts, kDeepSeekExperts, kIndexer},
       .config = {kSizes, kDecoder, kDeepSeekMoe, kGroups, kLatentSizes, kIndexerSizes},
       .expected = {kSilu,
                    {"topk_method", {R"("noaux_tc")"}},
                    {"scoring_func", {R"("sigmoid")"}},
                    {"moe_layer_freq", {"1"}}},
       .more = more_deepseek_v3,
       .yarn = {.has_multipliers = true}},
      {.name = "GlmMoeDsaForCausalLM",
       .gguf = "glm-dsa",
       .tensors = {kEnds, kNorms, kLatent, kFeedForward, kExperts, kDeepSeekExperts, kIndexer},
       .config = {kSizes, kDecoder, kDeepSeekMoe, kGroups, kLatentSizes, kIndexerSizes},
       .expected = {kSilu},
       .more = more_glm_dsa,
       .yarn = {.has_multipliers = true}},
      {.name = "Mistral4ForCausalLM",
       .gguf = "mistral4",
       .tensors = deepseek,
       .config = {kSizes, kDecoder, kDeepSeekMoe, kGroups, kLatentSizes},
       .expected = {kSilu, {"rope_interleave", {"true"}}},
       .more = more_mistral4,
       .yarn = {.has_multipliers = true}},
      {.name = "MiniCPM3ForCausalLM",
       .gguf = "minicpm3",
       .tensors = {kEnds, kNorms, kLatent, kFeedForward},
       .config = {kSizes, kDecoder, kLatentSizes},
       .expected = {kSilu,
                    {"scale_emb", {"12", "12.0"}},
                    {"scale_depth", {"1.4"}},
                    {"dim_model_base", {"256"}}},
       .more = more_minicpm3},
      {.name = "Glm4MoeLiteForCausalLM",
       .gguf = "deepseek2",
       .tensors = deepseek,
       .config = {kSizes, kDecoder, kDeepSeekMoe, kGroups, kLatentSizes},
       .expected = {kSilu, {"rope_interleave", {"true"}}},
       .more = more_deepseek_v3,
       .yarn = {.has_multipliers = true}},
      {.name = "Glm4MoeForCausalLM",
       .gguf = "glm4moe",
       .tensors = {kEnds, kGlmMoeNorms, kQueryKey, kValueOutput, kFeedForward, kExperts,
                   kDeepSeekExperts},
       .config = {kSizes, kDecoder, kDeepSeekMoe, kGroups},
       .expected = {kSilu},
       .more = more_glm4_moe},
      {.name = "SolarOpenForCausalLM",
       .gguf = "glm4moe",
       .tensors = {kEnds, kGlmMoeNorms, kQueryKey, kValueOutput, kFeedForward, kExperts,
                   kDeepSeekExperts},
       .config = {kSolar, kDecoder, kGroups},
       .expected = {kSilu, {"use_qk_norm", {"false"}}},
       .more = more_sigmoid},
      {.name = "Dots1ForCausalLM",
       .gguf = "dots1",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts,
                   kDeepSeekExperts},
       .config = {kSizes, kDecoder, kDeepSeekMoe, kGroups},
       .expected = {kSilu},
       .more = more_sigmoid},
      {.name = "Ernie4_5_MoeForCausalLM",
       .gguf = "ernie4_5-moe",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kDeepSeekExperts,
                   kErnieBias},
       .config = {kSizes, kDecoder, kErnieMoe},
       .expected = {kSilu},
       .more = more_ernie_moe},
      {.name = "HunYuanMoEV1ForCausalLM",
       .gguf = "hunyuan-moe",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kExperts, kHunyuanExperts},
       .config = {kSizes, kDecoder},
       .expected = {kSilu},
       .more = more_hunyuan_moe},
      {.name = "MiniMaxM2ForCausalLM",
       .gguf = "minimax-m2",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kMixtralExperts, kMiniMaxBias},
       .config = {kSizes, kDecoder, kMixtral},
       .expected = {kSilu},
       .more = more_sigmoid},
  };
}

}  // namespace prism::llm
