// The Hugging Face decoders whose code is in their folders and whose tensors have names of their
// own.
#include <algorithm>

#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kChatGlm[] = {
    {"embedding.word_embeddings.weight", "token_embd.weight"},
    {"encoder.final_layernorm.weight", "output_norm.weight"},
    {"output_layer.weight", "output.weight"},
    {"rotary_pos_emb.inv_freq", ""},
    {"encoder.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"encoder.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"encoder.layers.{}.self_attention.query_key_value.weight", "blk.{}.attn_qkv.weight"},
    {"encoder.layers.{}.self_attention.query_key_value.bias", "blk.{}.attn_qkv.bias"},
    {"encoder.layers.{}.self_attention.dense.weight", "blk.{}.attn_output.weight"},
    {"encoder.layers.{}.mlp.dense_h_to_4h.weight", "blk.{}.ffn_up.weight"},
    {"encoder.layers.{}.mlp.dense_4h_to_h.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kOpenElm[] = {
    {"token_embeddings.weight", "token_embd.weight"},
    {"norm.weight", "output_norm.weight"},
    {"layers.{}.attn_norm.weight", "blk.{}.attn_norm.weight"},
    {"layers.{}.attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"layers.{}.attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"layers.{}.attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    {"layers.{}.attn.out_proj.weight", "blk.{}.attn_output.weight"},
    {"layers.{}.ffn_norm.weight", "blk.{}.ffn_norm.weight"},
    {"layers.{}.ffn.proj_1.weight", "blk.{}.ffn_gate.weight", first_half},
    {"layers.{}.ffn.proj_1.weight", "blk.{}.ffn_up.weight", second_half},
    {"layers.{}.ffn.proj_2.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kTalkie[] = {
    {"model.embed.weight", "token_embd.weight"},
    {"lm_head", "output.weight"},
    {"lm_head_gain.w_g", ""},  // a number in the metadata
    {"model.blocks.{}.attn.attn_query.weight", "blk.{}.attn_q.weight"},
    {"model.blocks.{}.attn.attn_key.weight", "blk.{}.attn_k.weight"},
    {"model.blocks.{}.attn.attn_value.weight", "blk.{}.attn_v.weight"},
    {"model.blocks.{}.attn.attn_resid.weight", "blk.{}.attn_output.weight"},
    {"model.blocks.{}.attn.head_gain.head_g", "blk.{}.attn_q_norm.weight", column},
    {"model.blocks.{}.attn_gain.a_g", "blk.{}.attn_output.scale"},
    {"model.blocks.{}.mlp.mlp_gate.weight", "blk.{}.ffn_gate.weight"},
    {"model.blocks.{}.mlp.mlp_linear.weight", "blk.{}.ffn_up.weight"},
    {"model.blocks.{}.mlp.mlp_resid.weight", "blk.{}.ffn_down.weight"},
    {"model.blocks.{}.mlp_gain.a_g", "blk.{}.ffn_down.scale"},
    {"model.blocks.{}.embed_skip.a_g", "blk.{}.layer_output_scale.weight"},
};
constexpr TensorRule kOlmo[] = {
    {"wte.weight", "token_embd.weight"},
    {"ff_out.weight", "output.weight"},
    {"blocks.{}.att_proj.weight", "blk.{}.attn_qkv.weight", fused_rotary},
    {"blocks.{}.attn_out.weight", "blk.{}.attn_output.weight"},
    {"blocks.{}.ff_proj.weight", "blk.{}.ffn_up.weight", first_half},
    {"blocks.{}.ff_proj.weight", "blk.{}.ffn_gate.weight", second_half},
    {"blocks.{}.ff_out.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kMamba[] = {
    {"embedding.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight"},
    {"norm_f.weight", "output_norm.weight"},
    {"layers.{}.norm.weight", "blk.{}.attn_norm.weight"},
    {"layers.{}.mixer.A_log", "blk.{}.ssm_a", negative_exp},
    {"layers.{}.mixer.D", "blk.{}.ssm_d"},
    {"layers.{}.mixer.conv1d.weight", "blk.{}.ssm_conv1d.weight", squeezed},
    {"layers.{}.mixer.conv1d.bias", "blk.{}.ssm_conv1d.bias"},
    {"layers.{}.mixer.in_proj.weight", "blk.{}.ssm_in.weight"},
    {"layers.{}.mixer.out_proj.weight", "blk.{}.ssm_out.weight"},
    {"layers.{}.mixer.x_proj.weight", "blk.{}.ssm_x.weight"},
    {"layers.{}.mixer.dt_proj.weight", "blk.{}.ssm_dt.weight"},
    {"layers.{}.mixer.dt_proj.bias", "blk.{}.ssm_dt.bias"},
};
constexpr TensorRule kRuGpt[] = {
    {"model.embed_positions.weight", "position_embd.weight", cut},
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_qkv.weight", joined, 0, 3},
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_qkv.weight", joined, 1, 3},
    {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_qkv.weight", joined, 2, 3},
    {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_qkv.bias", joined, 0, 3},
    {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_qkv.bias", joined, 1, 3},
    {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_qkv.bias", joined, 2, 3},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias"},
};

// --- hyperparameters
constexpr ConfigRule kLayerNormEps[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", number},
};
constexpr ConfigRule kChatGlmSizes[] = {
    {"layernorm_epsilon", "attention.layer_norm_rms_epsilon", number},
    {"multi_query_group_num", "attention.head_count_kv", integer, false},
};
constexpr ConfigRule kLayersAndWidth[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
};
constexpr ConfigRule kClamp[] = {{"clip_qkv", "attention.clamp_kqv", number, false}};

// --- what rows of the table cannot say
void set_number(std::string_view prefix, const char* key, double value, GgufWriter& to) {
  to.set(fmt::format("{}{}", prefix, key), static_cast<float>(value));
}

void more_chatglm(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_size(prefix, "rope.dimension_count", head_length(config) / 2, to);
  set_number(prefix, "rope.freq_base", 1e4 * config["rope_ratio"].number_or(1, 1e-3, 1e6), to);
  if (!config["multi_query_attention"].boolean_or(false))
    set_size(prefix, "attention.head_count_kv", size_of(config, "num_attention_heads"), to);
}

// A multiple of the model's width, rounded to a multiple of the divisor, but not down by a tenth.
int64_t openelm_width(double multiple, int64_t width, int64_t divisor) {
  const double wide = multiple * static_cast<double>(width);
  const auto rounded = std::max(
      divisor, static_cast<int64_t>(wide + static_cast<double>(divisor) / 2) / divisor * divisor);
  return static_cast<double>(rounded) < 0.9 * wide ? rounded + divisor : rounded;
}

void more_openelm(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const auto heads = [&](const char* name) {
    std::vector<int32_t> all;
    for (const JsonView& each : config[name].items())
      all.push_back(static_cast<int32_t>(each.integer(1, 1 << 16)));
    return all;
  };
  std::vector<int32_t> widths;
  for (const JsonView& each : config["ffn_multipliers"].items())
    widths.push_back(
        static_cast<int32_t>(openelm_width(each.number(1e-3, 1e3), size_of(config, "hidden_size"),
                                           config["ffn_dim_divisor"].integer(1, 1 << 16))));
  to.set(fmt::format("{}attention.head_count", prefix), heads("num_query_heads"));
  to.set(fmt::format("{}attention.head_count_kv", prefix), heads("num_kv_heads"));
  to.set(fmt::format("{}feed_forward_length", prefix), widths);
  const int64_t length = size_of(config, "head_dim");
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count"})
    set_size(prefix, key, length, to);
  set_number(prefix, "rope.freq_base", config["rope_freq_constant"].number_or(1e4, 1e-3, 1e12), to);
  set_number(prefix, "attention.layer_norm_rms_epsilon", 1e-6, to);
}

// Heads turn backwards: the second halves of q and k change their sign.
std::vector<RowFactor> talkie_factors(const JsonView& config, std::string_view to, int64_t) {
  if (to != "blk.{}.attn_q.weight" && to != "blk.{}.attn_k.weight") return {};
  const int64_t half = head_length(config) / 2;
  std::vector<RowFactor> factors;
  for (int64_t i = 0; i < size_of(config, "num_attention_heads"); ++i) {
    factors.push_back({half, 1});
    factors.push_back({half, -1});
  }
  return factors;
}

// Norms have neither weights nor a setting; the epsilon is that of f32.
void more_talkie(const JsonView&, std::string_view prefix, GgufWriter& to) {
  set_number(prefix, "attention.layer_norm_rms_epsilon", 0x1p-23, to);
}

void read_logit_scale(const HfFolder& folder, GgufWriter& to) {
  to.set("talkie.logit_scale", folder.number("lm_head_gain.w_g"));
}

void more_olmo(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t width = size_of(config, "hidden_size"), heads = size_of(config, "n_heads");
  const int64_t both = config["mlp_hidden_size"].integer_or(
      config["mlp_ratio"].integer_or(4, 1, 64) * width, 2, 1 << 24);
  set_size(prefix, "feed_forward_length", both / 2, to);
  if (config["multi_query_attention"].boolean_or(false) ||
      config["n_kv_heads"].integer_or(heads, 1, 1 << 16) != heads)
    refuse(
        "n_kv_heads or multi_query_attention share keys; folders of OLMo that do so are not "
        "known");
  set_number(prefix, "attention.layer_norm_epsilon",
             config["layer_norm_eps"].number_or(1e-5, 1e-12, 1), to);
}

// Sparse layers see everything in the first of their windows.
int64_t rugpt_context(const JsonView& config) {
  if (config["sparse_mode"].string_or("none") == "none") return 0;
  return config["sparse_block_size"].integer_or(16, 1, 1 << 16) *
         config["sparse_num_local_blocks"].integer_or(8, 1, 1 << 12);
}

// Settings that files of Mamba's own package leave out are those of its published sizes.
void more_mamba_package(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const JsonView own = config["ssm_cfg"];
  if (const std::string layer = own["layer"].string_or("Mamba1"); layer != "Mamba1")
    refuse(fmt::format("ssm_cfg.layer is {}; save the model with transformers", printable(layer)));
  if (!config["attn_layer_idx"].items().empty()) refuse("attn_layer_idx names layers of attention");
  const int64_t width = size_of(config, "hidden_size");
  const JsonView rank = own["dt_rank"];
  set_size(prefix, "ssm.inner_size", width * own["expand"].integer_or(2, 1, 64), to);
  set_size(prefix, "ssm.state_size", own["d_state"].integer_or(16, 1, 1 << 14), to);
  set_size(prefix, "ssm.conv_kernel", own["d_conv"].integer_or(4, 2, 64), to);
  set_size(prefix, "ssm.time_step_rank",
           rank.is_number() ? rank.integer(1, 1 << 20) : (width + 15) / 16, to);
  for (const char* key : {"attention.head_count", "feed_forward_length"})
    to.set(fmt::format("{}{}", prefix, key), uint32_t{0});
  set_number(prefix, "attention.layer_norm_rms_epsilon", 1e-5, to);
}

}  // namespace

std::vector<HfArchitecture> hf_named_decoders() {
  constexpr int64_t kNoLimit = 1 << 20;
  return {
      {.name = "ChatGLMModel",
       .gguf = "chatglm",
       .tensors = {kChatGlm},
       .config = {kSizes, kChatGlmSizes},
       .expected = {{"rmsnorm", {"true"}},
                    {"add_bias_linear", {"false"}},
                    {"add_qkv_bias", {"true"}},
                    {"post_layer_norm", {"true"}},
                    {"apply_residual_connection_post_layernorm", {"false"}},
                    {"original_rope", {"true"}},
                    {"quantization_bit", {"0"}},
                    {"pre_seq_len", {}}},
       .more = more_chatglm,
       .is_rotated = false,
       .prefix = "transformer."},
      {.name = "OpenELMForCausalLM",
       .gguf = "openelm",
       .tensors = {kOpenElm},
       .config = {kLayersAndWidth},
       .expected = {{"ffn_with_glu", {"true"}},
                    {"normalize_qk_projections", {"true"}},
                    {"share_input_output_layers", {"true"}},
                    {"activation_fn_name", {R"("swish")", R"("silu")"}},
                    {"normalization_layer_name", {R"("rms_norm")"}}},
       .more = more_openelm,
       .is_rotated = false,
       .is_tied = true,
       .prefix = "transformer.",
       .has_heads = false},
      {.name = "TalkieForCausalLM",
       .gguf = "talkie",
       .tensors = {kTalkie},
       .config = {kSizes},
       .expected = {kSilu},
       .more = more_talkie,
       .from_tensors = read_logit_scale,
       .factors = talkie_factors},
      {.name = "OLMoForCausalLM",
       .gguf = "olmo",
       .tensors = {kOlmo},
       .config = {kSizes, kClamp},
       .expected = {{"activation_type", {R"("swiglu")"}},
                    {"block_type", {R"("sequential")"}},
                    {"layer_norm_type", {R"("default")", R"("low_precision")"}},
                    {"layer_norm_with_affine", {"false"}},
                    {"attention_layer_norm", {"false"}},
                    {"rope", {"true"}},
                    {"alibi", {"false"}},
                    {"include_bias", {"false"}},
                    {"norm_after", {"false"}},
                    {"scale_logits", {"false"}}},
       .more = more_olmo,
       .prefix = "model.transformer."},
      {.name = "RuGPT3XLForCausalLM",
       .gguf = "gpt2",
       .tensors = {kEnds, kNorms, kNormBiases, kRuGpt, kFeedForward},
       .config = {kSizes, kLayerNormEps},
       .expected = {{"hidden_act", {R"("gelu_new")", R"("gelu_pytorch_tanh")"}}},
       .is_rotated = false,
       .is_tied = true,
       .right_up_to = rugpt_context},
      {.name = "MambaLMHeadModel",
       .gguf = "mamba",
       .tensors = {kMamba},
       .config = {kLayersAndWidth},
       .expected = {{"rms_norm", {"true"}}, {"d_intermediate", {"0"}}},
       .more = more_mamba_package,
       .is_rotated = false,
       .is_tied = true,
       .prefix = "backbone.",
       .has_heads = false,
       .default_context = kNoLimit},
  };
}

}  // namespace prism::llm
