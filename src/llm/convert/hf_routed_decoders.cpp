// The Hugging Face decoders with experts whose routers or layers differ from the usual ones: Llama
// 4, Phi-3.5-MoE, Ling, MiMo, MiniMax-M3.
#include <algorithm>

#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kLlama4[] = {
    {"model.layers.{}.feed_forward.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.feed_forward.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.feed_forward.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.feed_forward.router.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.feed_forward.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight",
     left_transposed},
    {"model.layers.{}.feed_forward.experts.gate_up_proj", "blk.{}.ffn_up_exps.weight",
     right_transposed},
    {"model.layers.{}.feed_forward.experts.down_proj", "blk.{}.ffn_down_exps.weight", transposed},
    // Quantised folders have the experts one by one.
    {"model.layers.{}.feed_forward.experts.{}.gate_proj.weight", "blk.{}.ffn_gate_exps.weight"},
    {"model.layers.{}.feed_forward.experts.{}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
    {"model.layers.{}.feed_forward.experts.{}.down_proj.weight", "blk.{}.ffn_down_exps.weight"},
    {"model.layers.{}.feed_forward.shared_expert.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.feed_forward.shared_expert.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.feed_forward.shared_expert.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kOutputBias[] = {{"lm_head.bias", "output.bias"}};
constexpr TensorRule kBailing[] = {
    {"model.word_embeddings.weight", "token_embd.weight"},
    {"model.layers.{}.attention.dense.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.attention.dense.bias", "blk.{}.attn_output.bias"},
    {"model.layers.{}.attention.query_layernorm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.attention.key_layernorm.weight", "blk.{}.attn_k_norm.weight"},
    {"model.layers.{}.mlp.gate.expert_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kBailingHalves[] = {
    {"model.layers.{}.attention.query_key_value.weight", "blk.{}.attn_qkv.weight"},
    {"model.layers.{}.attention.query_key_value.bias", "blk.{}.attn_qkv.bias"},
};
constexpr TensorRule kBailingAdjacent[] = {
    {"model.layers.{}.attention.query_key_value.weight", "blk.{}.attn_qkv.weight", fused_rotary},
    {"model.layers.{}.attention.query_key_value.bias", "blk.{}.attn_qkv.bias", fused_rotary},
};

constexpr TensorRule kRouters[] = {
    {"model.layers.{}.mlp.router.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.expert_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.mlp.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.mlp.experts.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.self_attn.gate_proj.weight", "blk.{}.attn_gate.weight"},
    {"model.layers.{}.self_attn.g_proj.weight", "blk.{}.attn_gate.weight"},
};
constexpr TensorRule kSharedExperts[] = {
    {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
    {"model.layers.{}.mlp.shared_mlp.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_mlp.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_mlp.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kAfmoeNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.pre_mlp_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.post_mlp_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
};
constexpr TensorRule kMiniMax3[] = {
    {"model.norm.weight", "output_norm.weight", add_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", add_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", add_one},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", add_one},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", add_one},
    {"model.layers.{}.self_attn.index_q_norm.weight", "blk.{}.indexer.q_norm.weight", add_one},
    {"model.layers.{}.self_attn.index_k_norm.weight", "blk.{}.indexer.k_norm.weight", add_one},
    {"model.layers.{}.self_attn.index_q_proj.weight", "blk.{}.indexer.q_proj.weight"},
    {"model.layers.{}.self_attn.index_k_proj.weight", "blk.{}.indexer.k_proj.weight"},
    {"model.layers.{}.block_sparse_moe.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.block_sparse_moe.shared_experts.gate_proj.weight",
     "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.block_sparse_moe.shared_experts.up_proj.weight",
     "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.block_sparse_moe.shared_experts.down_proj.weight",
     "blk.{}.ffn_down_shexp.weight"},
};

// --- hyperparameters
constexpr ConfigRule kCohereMoe[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"num_key_value_heads", "attention.head_count_kv", integer, false},
    {"intermediate_size", "feed_forward_length"},
    {"prefix_dense_intermediate_size", "feed_forward_length", integer, false},  // if it is another
    {"intermediate_size", "expert_feed_forward_length"},
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"num_shared_experts", "expert_shared_count", integer, false},
    {"first_k_dense_replace", "leading_dense_block_count", integer, false},
    {"logit_scale", "logit_scale", number, false},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", number, false},
    {"layer_norm_eps", "attention.layer_norm_epsilon", number, false},
};
constexpr ConfigRule kMiniMax3Sizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"dense_intermediate_size", "feed_forward_length"},
    {"intermediate_size", "expert_feed_forward_length"},
    {"routed_scaling_factor", "expert_weights_scale", number, false},
};
constexpr ConfigRule kNumberedExperts[] = {
    {"num_experts", "expert_count", integer, false},
    {"num_local_experts", "expert_count", integer, false},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"num_shared_experts", "expert_shared_count", integer, false},
    {"first_k_dense_replace", "leading_dense_block_count", integer, false},
    {"num_dense_layers", "leading_dense_block_count", integer, false},
    {"n_group", "expert_group_count", integer, false},
    {"topk_group", "expert_group_used_count", integer, false},
    {"routed_scaling_factor", "expert_weights_scale", number, false},
    {"router_scaling_factor", "expert_weights_scale", number, false},
    {"route_scale", "expert_weights_scale", number, false},
    {"moe_routed_scaling_factor", "expert_weights_scale", number, false},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", integer, false},
};
constexpr ConfigRule kLlama4Sizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"intermediate_size_mlp", "feed_forward_length"},
    {"intermediate_size", "expert_feed_forward_length"},
    {"interleave_moe_layer_step", "interleave_moe_layer_step"},
};
constexpr ConfigRule kBailingMoe[] = {
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"num_shared_experts", "expert_shared_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"first_k_dense_replace", "leading_dense_block_count"},
    {"n_group", "expert_group_count", integer, false},
    {"topk_group", "expert_group_used_count", integer, false},
    {"routed_scaling_factor", "expert_weights_scale", number, false},
};

constexpr ConfigRule kScaled[] = {{"routed_scaling_factor", "expert_weights_scale", number}};

// --- what rows of the table cannot say
void more_llama4(const JsonView& config, std::string_view, GgufWriter&) {
  check_layers(config, "no_rope_layers", [](int64_t layer, const JsonView& rotates) {
    return rotates.integer() == ((layer + 1) % 4 == 0 ? 0 : 1);
  });
  check_layers(config, "layer_types", [](int64_t layer, const JsonView& type) {
    return type.string() == ((layer + 1) % 4 == 0 ? "full_attention" : "chunked_attention");
  });
  const int64_t step = config["interleave_moe_layer_step"].integer(1, 4096);
  int64_t before = -1;
  for (const JsonView& each : config["moe_layers"].items()) {
    if (each.integer() != before + step)
      refuse(fmt::format("moe_layers is {}; Prism's Llama 4 has experts in every {}. layer",
                         printable(config["moe_layers"].json().dump()), step));
    before = each.integer();
  }
  // The model with 128 experts is the one without norms of q and k.
  const bool has_norms = config["use_qk_norm"].boolean_or(true);
  if (has_norms == (config["num_local_experts"].integer(1, 1024) == 128))
    refuse(
        fmt::format("use_qk_norm is {} with {} experts; Prism's Llama 4 has norms unless there "
                    "are 128",
                    has_norms, config["num_local_experts"].integer()));
}

// The router of Phi-3.5-MoE weighs each of its two experts among those whose scores are within this
// range; its norms subtract means. llama.cpp's files of this model lack the key, and are computed
// with a softmax and without means.
void more_phimoe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}router_jitter_noise", prefix),
         static_cast<float>(config["router_jitter_noise"].number_or(0.01, 0, 1)));
}

void more_bailing(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}expert_weights_norm", prefix), config["norm_topk_prob"].boolean_or(true));
}

void more_bailing2(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr uint32_t kSigmoid = 2;
  check_rotated_part(config, prefix, to);
  to.set(fmt::format("{}expert_gating_func", prefix), kSigmoid);
  more_bailing(config, prefix, to);
}

void more_sarvam(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  constexpr uint32_t kSigmoid = 2;
  to.set(fmt::format("{}expert_gating_func", prefix), kSigmoid);
  more_bailing(config, prefix, to);
}

// The scores of each expert by itself; the first layers are dense as the numbers say.
void set_sigmoid(const JsonView& config, std::string_view prefix, const char* norm_key,
                 GgufWriter& to) {
  constexpr uint32_t kSigmoid = 2;
  to.set(fmt::format("{}expert_gating_func", prefix), kSigmoid);
  to.set(fmt::format("{}expert_weights_norm", prefix), config[norm_key].boolean_or(true));
  int64_t dense = 0;
  bool has_experts = false;
  for (const JsonView& each : config["mlp_layer_types"].items()) {
    if (each.string() == "dense" && has_experts)
      refuse(fmt::format("mlp_layer_types is {}; in Prism the first layers are dense, then none",
                         printable(config["mlp_layer_types"].json().dump())));
    has_experts = each.string() != "dense";
    dense += has_experts ? 0 : 1;
  }
  if (config["mlp_layer_types"])
    to.set(fmt::format("{}leading_dense_block_count", prefix), static_cast<uint32_t>(dense));
}

void set_shared_width(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}expert_shared_feed_forward_length", prefix),
         static_cast<uint32_t>(config["num_shared_experts"].integer_or(1, 0, 1024) *
                               config["moe_intermediate_size"].integer(1, 1 << 20)));
}

void more_hy_v3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_sigmoid(config, prefix, "route_norm", to);
  set_shared_width(config, prefix, to);
}

void more_exaone_moe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_sigmoid(config, prefix, "norm_topk_prob", to);
  set_shared_width(config, prefix, to);
  check_windows(config, 4);
}

void more_afmoe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_sigmoid(config, prefix, "route_norm", to);
  check_windows(config, 4);
  if (!config["mup_enabled"].boolean_or(false))
    refuse("mup_enabled is false; Prism's afmoe scales its embeddings");
}

void more_mellum(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_windowed_layers(config, prefix, to);
}

void more_laguna(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_sigmoid(config, prefix, "norm_topk_prob", to);
  set_windowed_layers(config, prefix, to);
  const double part =
      config["rope_parameters"]["sliding_attention"]["partial_rotary_factor"].number_or(1, 0, 1);
  to.set(fmt::format("{}rope.dimension_count_swa", prefix),
         static_cast<uint32_t>(static_cast<double>(head_length(config)) * part) / 2 * 2);
  std::vector<int32_t> heads;
  for (const JsonView& each : config["num_attention_heads_per_layer"].items())
    heads.push_back(static_cast<int32_t>(each.integer(1, 1 << 16)));
  if (!heads.empty()) to.set(fmt::format("{}attention.head_count", prefix), heads);
}

void more_cohere2moe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_sigmoid(config, prefix, "norm_topk_prob", to);
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096),
                dense = config["first_k_dense_replace"].integer_or(0, 0, layers),
                period = config["sliding_window_pattern"].integer_or(4, 1, 4096);
  std::vector<bool> windowed;
  for (const JsonView& each : config["layer_types"].items())
    windowed.push_back(each.string() == "sliding_attention");
  if (windowed.empty())
    for (int64_t i = 0; i < layers; ++i)
      windowed.push_back(i >= dense && (i - dense + 1) % period != 0);
  if (windowed.size() != static_cast<size_t>(layers))
    refuse(fmt::format("layer_types has {} of {} layers", windowed.size(), layers));
  to.set(fmt::format("{}attention.sliding_window_pattern", prefix), windowed);
}

void more_minimax_m3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_sigmoid(config, prefix, "norm_topk_prob", to);
  const int64_t wide = size_of(config, "intermediate_size"),
                shared = config["shared_intermediate_size"].integer_or(0, 0, 1 << 20);
  if (shared % wide != 0)
    refuse(fmt::format("shared_intermediate_size is {}, not a multiple of intermediate_size {}",
                       shared, wide));
  set_size(prefix, "expert_shared_count", shared / wide, to);
  // MiniMax's own files have the settings of the indexer in a part of their own.
  const JsonView own = config["sparse_attention_config"];
  constexpr struct {
    const char *here, *in_own, *gguf;
  } kIndexer[] = {{"index_n_heads", "sparse_num_index_heads", "attention.indexer.head_count"},
                  {"index_head_dim", "sparse_index_dim", "attention.indexer.key_length"},
                  {"index_topk_blocks", "sparse_topk_blocks", "attention.indexer.top_k"},
                  {"index_block_size", "sparse_block_size", "attention.indexer.block_size"},
                  {"index_local_blocks", "sparse_local_block", "attention.indexer.local_blocks"}};
  for (const auto& each : kIndexer)
    set_size(prefix, each.gguf, (own ? own[each.in_own] : config[each.here]).integer(0, 1 << 20),
             to);
  // Layers with experts are those that choose blocks of keys; they follow the dense ones.
  const auto kinds = [&](const JsonView& numbers, const char* names, std::string_view sparse) {
    std::vector<bool> found;
    for (const JsonView& each : numbers.items()) found.push_back(each.integer(0, 1) == 1);
    if (found.empty())
      for (const JsonView& each : config[names].items()) found.push_back(each.string() == sparse);
    return found;
  };
  const std::vector<bool> routed = kinds(config["moe_layer_freq"], "mlp_layer_types", "sparse"),
                          chosen = kinds(own["sparse_attention_freq"], "layer_types",
                                         "minimax_m3_sparse");
  const auto layers = static_cast<size_t>(config["num_hidden_layers"].integer(1, 4096));
  const auto first = std::ranges::find(routed, true);
  if (routed.size() != layers || routed != chosen ||
      std::find(first, routed.end(), false) != routed.end())
    refuse("layers with experts are not those that choose blocks of keys, after dense ones");
  set_size(prefix, "leading_dense_block_count", first - routed.begin(), to);
}

}  // namespace

std::vector<HfArchitecture> hf_routed_decoders() {
  return {
      {.name = "HYV3ForCausalLM",
       .gguf = "hy_v3",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kRouters,
                   kSharedExperts},
       .config = {kSizes, kDecoder, kNumberedExperts},
       .expected = {kSilu},
       .more = more_hy_v3},
      {.name = "ExaoneMoeForCausalLM",
       .gguf = "exaone-moe",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kRouters,
                   kSharedExperts},
       .config = {kSizes, kDecoder, kNumberedExperts, kWindow},
       .expected = {kSilu, {"sliding_window_pattern", {"4", R"("LLLG")"}}},
       .has_windows = true,
       .more = more_exaone_moe},
      {.name = "AfmoeForCausalLM",
       .gguf = "afmoe",
       .tensors = {kEnds, kAfmoeNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kRouters,
                   kSharedExperts},
       .config = {kSizes, kDecoder, kNumberedExperts, kWindow},
       .expected = {kSilu, {"score_func", {R"("sigmoid")"}}, {"global_attn_every_n_layers", {"4"}}},
       .has_windows = true,
       .more = more_afmoe},
      {.name = "MellumForCausalLM",
       .gguf = "mellum",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kExperts},
       .config = {kSizes, kDecoder, kNumberedExperts, kWindow},
       .expected = {kSilu, {"norm_topk_prob", {"true"}}},
       .has_windows = true,
       .more = more_mellum},
      {.name = "LagunaForCausalLM",
       .gguf = "laguna",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kRouters,
                   kSharedExpert},
       .config = {kSizes, kDecoder, kNumberedExperts, kWindow},
       .expected = {kSilu,
                    {"gating", {"true"}},
                    {"moe_apply_router_weight_on_input", {"false"}},
                    {"moe_router_logit_softcapping", {"0", "0.0"}}},
       .has_windows = true,
       .more = more_laguna},
      {.name = "Cohere2MoeForCausalLM",
       .gguf = "cohere2moe",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward, kExperts, kSharedExperts},
       .config = {kCohereMoe, kWindow},
       .expected = {kSilu,
                    {"expert_selection_fn", {R"("sigmoid")"}},
                    {"shared_expert_combination_strategy", {R"("average")"}},
                    {"prefix_dense_sliding_window_pattern", {"1"}},
                    {"use_qk_norm", {"false"}}},
       .has_windows = true,
       .more = more_cohere2moe,
       .is_tied = true},
      {.name = "MiniMaxM3SparseForCausalLM",
       .gguf = "minimax-m3",
       .tensors = {kEnds, kMiniMax3, kQueryKey, kValueOutput, kFeedForward, kMixtralExperts},
       .config = {kMiniMax3Sizes, kDecoder, kMixtral},
       .expected = {{"hidden_act", {R"("silu")", R"("swigluoai")"}},
                    {"swiglu_limit", {"7", "7.0"}},
                    {"swiglu_alpha", {"1.702"}}},
       .more = more_minimax_m3},
      {.name = "Llama4ForCausalLM",
       .gguf = "llama4",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kLlama4},
       .config = {kLlama4Sizes, kDecoder, kMixtral},
       .expected = {kSilu,
                    {"attention_chunk_size", {"8192"}},
                    {"attn_temperature_tuning", {"true", "4"}},
                    {"floor_scale", {"8192", "8192.0"}},
                    {"attn_scale", {"0.1"}}},
       .has_windows = true,
       .more = more_llama4},
      {.name = "PhimoeForCausalLM",
       .gguf = "phimoe",
       .tensors = {kEnds, kOutputBias, kNorms, kNormBiases, kQueryKey, kValueOutput,
                   kMixtralExperts},
       .config = {kSizes, kDecoder, kMixtral},
       .expected = {kSilu, {"num_experts_per_tok", {"2"}}},
       .more = more_phimoe},
      {.name = "BailingMoeForCausalLM",
       .gguf = "bailingmoe",
       .tensors = {kEnds, kNorms, kBailing, kBailingAdjacent, kFeedForward, kExperts},
       .config = {kSizes, kDecoder, kBailingMoe},
       .expected = {kSilu, {"norm_head", {"false"}}, {"first_k_dense_replace", {"0"}}},
       .more = more_bailing},
      {.name = "BailingMoeV2ForCausalLM",
       .gguf = "bailingmoe2",
       .tensors = {kEnds, kNorms, kBailing, kBailingHalves, kFeedForward, kExperts},
       .config = {kSizes, kDecoder, kBailingMoe},
       .expected = {kSilu, {"use_qk_norm", {"true"}}, {"score_function", {R"("sigmoid")"}}},
       .more = more_bailing2},
      {.name = "SarvamMoEForCausalLM",
       .gguf = "bailingmoe2",
       .tensors = {kEnds, kNorms, kBailing, kBailingHalves, kFeedForward, kExperts},
       .config = {kSizes, kDecoder, kBailingMoe, kScaled},
       .expected = {kSilu, {"use_qk_norm", {"true"}}, {"score_function", {R"("sigmoid")"}}},
       .more = more_sarvam},
  };
}

}  // namespace prism::llm
