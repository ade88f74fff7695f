// The Hugging Face decoders whose layers differ from Llama's in norms, biases or activations.
#include <cmath>

#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_rules.h"

namespace prism::llm {

void check_rotated_part(const JsonView& config, std::string_view, GgufWriter&) {
  if (!config["partial_rotary_factor"] && !config["rotary_pct"] &&
      !config["rope_parameters"]["partial_rotary_factor"])
    refuse("partial_rotary_factor is missing: how much of a head is rotated is not known");
}

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
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
constexpr TensorRule kApertus[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.attention_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.feedforward_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    {"model.layers.{}.mlp.act_fn.alpha_n", ""},  // numbers in the metadata
    {"model.layers.{}.mlp.act_fn.alpha_p", ""},
    {"model.layers.{}.mlp.act_fn.beta", ""},
    {"model.layers.{}.mlp.act_fn.eps", ""},
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
constexpr TensorRule kInternLm2[] = {
    {"model.tok_embeddings.weight", "token_embd.weight"},
    {"output.weight", "output.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.attention.wqkv.weight", "blk.{}.attn_qkv.weight", rotary_groups},
    {"model.layers.{}.attention.wqkv.bias", "blk.{}.attn_qkv.bias", rotary_groups},
    {"model.layers.{}.attention.wo.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.attention.wo.bias", "blk.{}.attn_output.bias"},
    {"model.layers.{}.feed_forward.w1.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.feed_forward.w3.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.feed_forward.w2.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.attention_norm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.ffn_norm.weight", "blk.{}.ffn_norm.weight"},
};
constexpr TensorRule kExaone[] = {
    {"transformer.wte.weight", "token_embd.weight"},
    {"transformer.ln_f.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"transformer.h.{}.attn.attention.q_proj.weight", "blk.{}.attn_q.weight"},
    {"transformer.h.{}.attn.attention.k_proj.weight", "blk.{}.attn_k.weight"},
    {"transformer.h.{}.attn.attention.v_proj.weight", "blk.{}.attn_v.weight"},
    {"transformer.h.{}.attn.attention.out_proj.weight", "blk.{}.attn_output.weight"},
    {"transformer.h.{}.mlp.c_fc_0.weight", "blk.{}.ffn_gate.weight"},
    {"transformer.h.{}.mlp.c_fc_1.weight", "blk.{}.ffn_up.weight"},
    {"transformer.h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    {"transformer.h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"transformer.h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
};
constexpr TensorRule kSinks[] = {
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"},
};
// --- hyperparameters
constexpr ConfigRule kKeyHeads[] = {
    {"num_key_value_heads", "attention.head_count_kv", integer, false},
};
constexpr ConfigRule kRmsEpsilon[] = {
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", number},
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

// The numbers of each layer's activation.
void read_xielu(const HfFolder& folder, GgufWriter& to) {
  const int64_t layers = JsonView(folder.config())["num_hidden_layers"].integer(1, 4096);
  for (const char* name : {"alpha_n", "alpha_p", "beta", "eps"}) {
    std::vector<float> values;
    for (int64_t i = 0; i < layers; ++i)
      values.push_back(folder.number(fmt::format("model.layers.{}.mlp.act_fn.{}", i, name)));
    to.set(fmt::format("xielu.{}", name), values);
  }
}

// Layers with windows are not scaled.
void more_olmo3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  check_windows(config, 4);
  if (const JsonView local = config["rope_parameters"]["sliding_attention"])
    to.set(fmt::format("{}rope.freq_base_swa", prefix),
           static_cast<float>(local["rope_theta"].number_or(1e4, 1e-3, 1e12)));
}

// The norms of OLMo have neither weights nor a setting.
void more_olmo(const JsonView&, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}attention.layer_norm_epsilon", prefix), 1e-5f);
}

void more_minicpm(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const auto layers = config["num_hidden_layers"].number(1, 4096),
             width = config["hidden_size"].number(1, 1 << 20);
  const auto set = [&](const char* key, double value) {
    to.set(fmt::format("{}{}", prefix, key), static_cast<float>(value));
  };
  set("embedding_scale", config["scale_emb"].number(1e-6, 1e6));
  set("residual_scale", config["scale_depth"].number(1e-6, 1e6) / std::sqrt(layers));
  set("logit_scale", width / config["dim_model_base"].number(1, 1 << 20));
}

// GGUF has the whole multiplier here, where DeepSeek has a tenth of it.
void more_ministral3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const JsonView settings = config[config["rope_parameters"] ? "rope_parameters" : "rope_scaling"];
  if (settings["mscale_all_dim"])
    to.set(fmt::format("{}rope.scaling.yarn_log_multiplier", prefix),
           static_cast<float>(settings["mscale_all_dim"].number(0, 100)));
  if (settings["llama_4_scaling_beta"])
    to.set(fmt::format("{}attention.temperature_scale", prefix),
           static_cast<float>(settings["llama_4_scaling_beta"].number(0, 100)));
}

// Layers may have no rotation, which a base of 0 says, or all the same one.
}  // namespace

void set_granite_windows(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_windowed_layers(config, prefix, to);
  std::vector<int32_t> rotated;
  double base = 0;
  for (const JsonView& each : config["layer_rope_theta"].items()) {
    const double own = each ? each.number(0, 1e12) : 0;
    if (own > 0 && base > 0 && own != base)
      refuse(fmt::format("layer_rope_theta is {}; Prism's layers have the same base",
                         printable(config["layer_rope_theta"].json().dump())));
    base = own > 0 ? own : base;
    rotated.push_back(own > 0 ? 1 : 0);
  }
  if (rotated.empty())
    for (const JsonView& each : config["no_rope_layers"].items())
      rotated.push_back(static_cast<int32_t>(each.integer(0, 1)));
  if (rotated.empty()) return;
  to.set(fmt::format("{}attention.rope_pattern", prefix), rotated);
  if (base > 0) to.set(fmt::format("{}rope.freq_base", prefix), static_cast<float>(base));
}

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
      {.name = "ApertusForCausalLM",
       .gguf = "apertus",
       .tensors = {kEnds, kApertus, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {{"hidden_act", {R"("xielu")"}}},
       .from_tensors = read_xielu},
      {.name = "Olmo3ForCausalLM",
       .gguf = "olmo2",
       .tensors = {kEnds, kPostNorms, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder, kWindow},
       .expected = {kSilu},
       .has_windows = true,
       .more = more_olmo3},
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
      {"Jais2ForCausalLM",
       "jais2",
       {kEnds, kNorms, kNormBiases, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kKeyHeads, kLayerNormEps},
       {relu_squared}},
      {.name = "InternLM2ForCausalLM",
       .gguf = "internlm2",
       .tensors = {kInternLm2},
       .config = {kSizes, kDecoder},
       .expected = {kSilu}},
      {.name = "ExaoneForCausalLM",
       .gguf = "exaone",
       .tensors = {kExaone},
       .config = {kSizes, kKeyHeads, kRmsEpsilon},
       .expected = {{"activation_function", {R"("silu")"}}}},
      {.name = "MiniCPMForCausalLM",
       .gguf = "minicpm",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {kSilu},
       .more = more_minicpm},
      {.name = "Ministral3ForCausalLM",
       .gguf = "mistral3",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {kSilu},
       .more = more_ministral3,
       .yarn = {.has_multipliers = true}},
      {.name = "GraniteSWAForCausalLM",
       .gguf = "granite_swa",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kFeedForward, kSinks},
       .config = {kSizes, kDecoder, kWindow, kGraniteScales},
       .expected = {kSilu},
       .has_windows = true,
       .more = set_granite_windows},
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
