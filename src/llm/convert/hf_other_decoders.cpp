// The Hugging Face decoders whose layers differ from Llama's in norms, biases or activations.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kSeedNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
};
constexpr TensorRule kGlm4Norms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_self_attn_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.post_mlp_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
};
constexpr TensorRule kNemotronNorms[] = {
    {"model.norm.weight", "output_norm.weight", add_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", add_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", add_one},
};
constexpr TensorRule kHunyuanHeadNorms[] = {
    {"model.layers.{}.self_attn.query_layernorm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.key_layernorm.weight", "blk.{}.attn_k_norm.weight"},
};
constexpr TensorRule kPhi[] = {
    {"lm_head.bias", "output.bias"},
    {"model.final_layernorm.weight", "output_norm.weight"},
    {"model.final_layernorm.bias", "output_norm.bias"},
    {"model.layers.{}.self_attn.dense.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.self_attn.dense.bias", "blk.{}.attn_output.bias"},
    {"model.layers.{}.mlp.fc1.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.fc1.bias", "blk.{}.ffn_up.bias"},
    {"model.layers.{}.mlp.fc2.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.fc2.bias", "blk.{}.ffn_down.bias"},
};
constexpr TensorRule kStarcoderFeedForward[] = {
    {"model.layers.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    {"model.layers.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
};
constexpr TensorRule kSharedExpert[] = {
    {"model.layers.{}.mlp.shared_expert.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"model.layers.{}.mlp.shared_expert.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.mlp.shared_expert.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
    {"model.layers.{}.mlp.shared_expert_gate.weight", "blk.{}.ffn_gate_inp_shexp.weight"},
};
constexpr TensorRule kGraniteExperts[] = {
    {"model.layers.{}.block_sparse_moe.router.layer.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.input_linear.weight", "blk.{}.ffn_gate_up_exps.weight"},
    {"model.layers.{}.block_sparse_moe.output_linear.weight", "blk.{}.ffn_down_exps.weight"},
};
constexpr TensorRule kGpt2[] = {
    {"wte.weight", "token_embd.weight"},
    {"wpe.weight", "position_embd.weight", cut},
    {"ln_f.weight", "output_norm.weight"},
    {"ln_f.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},
    {"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", transposed},
    {"h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", transposed},
    {"h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", transposed},
    {"h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", transposed},
    {"h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    {"h.{}.attn.bias", ""},  // the causal mask
    {"h.{}.attn.masked_bias", ""},
};
constexpr TensorRule kGptNeox[] = {
    {"embed_in.weight", "token_embd.weight"},
    {"embed_out.weight", "output.weight"},
    {"final_layer_norm.weight", "output_norm.weight"},
    {"final_layer_norm.bias", "output_norm.bias"},
    {"layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias"},
    {"layers.{}.attention.query_key_value.weight", "blk.{}.attn_qkv.weight", split_heads},
    {"layers.{}.attention.query_key_value.bias", "blk.{}.attn_qkv.bias", split_heads},
    {"layers.{}.attention.dense.weight", "blk.{}.attn_output.weight"},
    {"layers.{}.attention.dense.bias", "blk.{}.attn_output.bias"},
    {"layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias"},
    {"layers.{}.mlp.dense_h_to_4h.weight", "blk.{}.ffn_up.weight"},
    {"layers.{}.mlp.dense_h_to_4h.bias", "blk.{}.ffn_up.bias"},
    {"layers.{}.mlp.dense_4h_to_h.weight", "blk.{}.ffn_down.weight"},
    {"layers.{}.mlp.dense_4h_to_h.bias", "blk.{}.ffn_down.bias"},
    {"layers.{}.attention.bias", ""},  // the causal mask
    {"layers.{}.attention.masked_bias", ""},
    {"layers.{}.attention.rotary_emb.inv_freq", ""},
};

// --- hyperparameters
constexpr ConfigRule kKeyHeads[] = {
    {"num_key_value_heads", "attention.head_count_kv", integer, false},
};
constexpr ConfigRule kLayerNormEps[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", number},
};
constexpr ConfigRule kNormEpsilon[] = {
    {"norm_epsilon", "attention.layer_norm_epsilon", number},
};
constexpr ConfigRule kNormEps[] = {
    {"norm_eps", "attention.layer_norm_epsilon", number},
};
constexpr ConfigRule kLayerNormEpsilon[] = {
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", number},
};
constexpr ConfigRule kLogitScale[] = {{"logit_scale", "logit_scale", number}};
constexpr ConfigRule kClamp[] = {{"clip_qkv", "attention.clamp_kqv", number, false}};
constexpr ConfigRule kSharedWidth[] = {
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length"},
};
constexpr ConfigRule kOlmoe[] = {
    {"num_experts", "expert_count", integer, false},
    {"num_local_experts", "expert_count", integer, false},  // the same, in newer files
    {"num_experts_per_tok", "expert_used_count"},
};

// --- what rows of the table cannot say
void more_cohere2(const JsonView& config, std::string_view, GgufWriter&) {
  if (const int64_t period = config["sliding_window_pattern"].integer_or(4); period != 4)
    refuse(fmt::format("sliding_window_pattern is {}; Prism's Command R7B has 4", period));
  check_windows(config, 4);
}

// Only the model with 64 layers has windows.
void more_exaone4(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const JsonView window = config["sliding_window"];
  const bool has_windows = config["num_hidden_layers"].integer(1, 4096) == 64;
  if (static_cast<bool>(window) != has_windows)
    refuse(fmt::format("sliding_window is {} for {} layers; Prism's EXAONE 4 has windows with 64",
                       printable(window.json().dump()), config["num_hidden_layers"].integer()));
  if (!has_windows) return;
  check_windows(config, 4);
  to.set(fmt::format("{}attention.sliding_window", prefix),
         static_cast<uint32_t>(window.integer(1, 1 << 30)));
}

// The norms of OLMo have neither weights nor a setting.
void more_olmo(const JsonView&, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}attention.layer_norm_epsilon", prefix), 1e-5f);
}

// Each of these rotates a part of a head by default, and not the same one.
void check_rotated_part(const JsonView& config, std::string_view, GgufWriter&) {
  if (!config["partial_rotary_factor"] && !config["rotary_pct"] &&
      !config["rope_parameters"]["partial_rotary_factor"])
    refuse("partial_rotary_factor is missing: how much of a head is rotated is not known");
}

void more_gpt_neox(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  check_rotated_part(config, prefix, to);
  to.set(fmt::format("{}use_parallel_residual", prefix),
         config["use_parallel_residual"].boolean_or(true));
}

}  // namespace

std::vector<HfArchitecture> hf_other_decoders() {
  const Expectation relu_squared{"hidden_act", {R"("relu2")"}};
  const Expectation gelu{"hidden_act", {R"("gelu_pytorch_tanh")", R"("gelu_new")"}};
  const Expectation no_norms{"qk_layernorm", {"false"}};
  const Expectation any_weights{"norm_topk_prob", {"false"}};
  return {
      {"SeedOssForCausalLM",
       "seed_oss",
       {kEnds, kSeedNorms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder},
       {kSilu}},
      {"ArceeForCausalLM",
       "arcee",
       {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder},
       {relu_squared}},
      {"OlmoForCausalLM",
       "olmo",
       {kEnds, kAdjacentQueryKey, kValueOutput, kFeedForward},
       {kSizes, kKeyHeads, kClamp},
       {kSilu},
       false,
       more_olmo},
      {"OlmoeForCausalLM",
       "olmoe",
       {kEnds, kNorms, kQueryKey, kValueOutput, kExperts},
       {kSizes, kDecoder, kOlmoe},
       {kSilu, any_weights, {"clip_qkv", {}}}},
      {"Qwen2MoeForCausalLM",
       "qwen2moe",
       {kEnds, kNorms, kQueryKey, kValueOutput, kExperts, kSharedExpert},
       {kSizes, kDecoder, kQwenMoe, kSharedWidth},
       {kSilu, any_weights, {"mlp_only_layers", {"[]"}}, {"decoder_sparse_step", {"1"}}}},
      {"GraniteMoeForCausalLM",
       "granitemoe",
       {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kGraniteExperts},
       {kSizes, kDecoder, kGraniteScales, kMixtral},
       {kSilu}},
      {"Starcoder2ForCausalLM",
       "starcoder2",
       {kEnds, kNorms, kNormBiases, kQueryKey, kValueOutput, kStarcoderFeedForward},
       {kSizes, kKeyHeads, kNormEpsilon},
       {gelu}},
      {"StableLmForCausalLM",
       "stablelm",
       {kEnds, kNorms, kNormBiases, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kKeyHeads, kLayerNormEps},
       {kSilu, no_norms},
       false,
       check_rotated_part},
      {"PhiForCausalLM",
       "phi2",
       {kEnds, kNorms, kNormBiases, kQueryKey, kValueOutput, kPhi},
       {kSizes, kKeyHeads, kLayerNormEps},
       {gelu, no_norms},
       false,
       check_rotated_part},
      {"NemotronForCausalLM",
       "nemotron",
       {kEnds, kNemotronNorms, kNormBiases, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kKeyHeads, kNormEps},
       {relu_squared},
       false,
       check_rotated_part},
      {"GPT2LMHeadModel",
       "gpt2",
       {kGpt2},
       {kSizes, kLayerNormEpsilon},
       {{"activation_function", {R"("gelu_new")", R"("gelu_pytorch_tanh")"}},
        {"scale_attn_weights", {"true"}},
        {"scale_attn_by_inverse_layer_idx", {"false"}},
        {"add_cross_attention", {"false"}}},
       false,
       nullptr,
       false,
       true,
       "transformer."},
      // The files of Pythia name the exact function; its approximation is close enough.
      {"GPTNeoXForCausalLM",
       "gptneox",
       {kGptNeox},
       {kSizes, kLayerNormEps},
       {{"hidden_act", {R"("gelu")", R"("gelu_new")", R"("gelu_fast")", R"("gelu_pytorch_tanh")"}}},
       false,
       more_gpt_neox,
       true,
       false,
       "gpt_neox."},
      // These rotate adjacent elements in transformers, too.
      {"CohereForCausalLM",
       "command-r",
       {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kKeyHeads, kLayerNormEps, kLogitScale},
       {kSilu}},
      {"Cohere2ForCausalLM",
       "cohere2",
       {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kKeyHeads, kLayerNormEps, kLogitScale, kWindow},
       {kSilu},
       true,
       more_cohere2},
      {"GlmForCausalLM",
       "chatglm",
       {kEnds, kNorms, kQueryKey, kValueOutput, kFusedFeedForward},
       {kSizes, kDecoder},
       {kSilu},
       false,
       check_rotated_part},
      {"Glm4ForCausalLM",
       "glm4",
       {kEnds, kGlm4Norms, kQueryKey, kValueOutput, kFusedFeedForward},
       {kSizes, kDecoder},
       {kSilu},
       false,
       check_rotated_part},
      {"Ernie4_5ForCausalLM",
       "ernie4_5",
       {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder},
       {kSilu}},
      {"Exaone4ForCausalLM",
       "exaone4",
       {kEnds, kPostNorms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder},
       {kSilu},
       true,
       more_exaone4},
      {"HunYuanDenseV1ForCausalLM",
       "hunyuan-dense",
       {kEnds, kNorms, kHunyuanHeadNorms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder},
       {kSilu}},
  };
}

}  // namespace prism::llm
