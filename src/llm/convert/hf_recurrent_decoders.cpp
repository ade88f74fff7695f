// The Hugging Face decoders with recurrent layers: Mamba 1 and 2 and short convolutions, alone or
// beside attention.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kBackbone[] = {
    {"embeddings.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight"},
    {"norm_f.weight", "output_norm.weight"},
    {"layers.{}.norm.weight", "blk.{}.attn_norm.weight"},
};
constexpr TensorRule kMixer[] = {
    {"layers.{}.mixer.A_log", "blk.{}.ssm_a", negative_exp},
    {"layers.{}.mixer.D", "blk.{}.ssm_d"},
    {"layers.{}.mixer.conv1d.weight", "blk.{}.ssm_conv1d.weight", squeezed},
    {"layers.{}.mixer.conv1d.bias", "blk.{}.ssm_conv1d.bias"},
    {"layers.{}.mixer.in_proj.weight", "blk.{}.ssm_in.weight"},
    {"layers.{}.mixer.out_proj.weight", "blk.{}.ssm_out.weight"},
    {"layers.{}.mixer.x_proj.weight", "blk.{}.ssm_x.weight"},
    {"layers.{}.mixer.dt_proj.weight", "blk.{}.ssm_dt.weight"},
    {"layers.{}.mixer.dt_proj.bias", "blk.{}.ssm_dt.bias"},
    {"layers.{}.mixer.dt_bias", "blk.{}.ssm_dt.bias"},
    {"layers.{}.mixer.norm.weight", "blk.{}.ssm_norm.weight", grouped},
};
constexpr TensorRule kNemotronMixer[] = {
    {"layers.{}.mixer.q_proj.weight", "blk.{}.attn_q.weight"},
    {"layers.{}.mixer.k_proj.weight", "blk.{}.attn_k.weight"},
    {"layers.{}.mixer.v_proj.weight", "blk.{}.attn_v.weight"},
    {"layers.{}.mixer.o_proj.weight", "blk.{}.attn_output.weight"},
    {"layers.{}.mixer.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"layers.{}.mixer.down_proj.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kJambaMixer[] = {
    {"model.layers.{}.mamba.x_proj.weight", "blk.{}.ssm_x.weight"},
    {"model.layers.{}.mamba.dt_proj.weight", "blk.{}.ssm_dt.weight"},
    {"model.layers.{}.mamba.dt_proj.bias", "blk.{}.ssm_dt.bias"},
    {"model.layers.{}.mamba.dt_layernorm.weight", "blk.{}.ssm_dt_norm.weight"},
    {"model.layers.{}.mamba.b_layernorm.weight", "blk.{}.ssm_b_norm.weight"},
    {"model.layers.{}.mamba.c_layernorm.weight", "blk.{}.ssm_c_norm.weight"},
    {"model.layers.{}.feed_forward.router.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.feed_forward.experts.{}.gate_proj.weight", "blk.{}.ffn_gate_exps.weight"},
    {"model.layers.{}.feed_forward.experts.{}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
    {"model.layers.{}.feed_forward.experts.{}.down_proj.weight", "blk.{}.ffn_down_exps.weight"},
};
constexpr TensorRule kGraniteShared[] = {
    {"model.layers.{}.shared_mlp.input_linear.weight", "blk.{}.ffn_gate_shexp.weight", first_half},
    {"model.layers.{}.shared_mlp.input_linear.weight", "blk.{}.ffn_up_shexp.weight", second_half},
    {"model.layers.{}.shared_mlp.output_linear.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kGraniteDense[] = {
    {"model.layers.{}.shared_mlp.input_linear.weight", "blk.{}.ffn_gate.weight", first_half},
    {"model.layers.{}.shared_mlp.input_linear.weight", "blk.{}.ffn_up.weight", second_half},
    {"model.layers.{}.shared_mlp.output_linear.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kLfm2[] = {
    {"model.embedding_norm.weight", "token_embd_norm.weight"},
    {"model.layers.{}.operator_norm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.ffn_norm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.self_attn.q_layernorm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_layernorm.weight", "blk.{}.attn_k_norm.weight"},
    {"model.layers.{}.self_attn.out_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.conv.conv.weight", "blk.{}.shortconv.conv.weight", squeezed},
    {"model.layers.{}.conv.in_proj.weight", "blk.{}.shortconv.in_proj.weight"},
    {"model.layers.{}.conv.out_proj.weight", "blk.{}.shortconv.out_proj.weight"},
    {"model.layers.{}.feed_forward.w1.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.feed_forward.w3.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.feed_forward.w2.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kLfm2Experts[] = {
    {"model.layers.{}.feed_forward.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.feed_forward.expert_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.feed_forward.experts.{}.w1.weight", "blk.{}.ffn_gate_exps.weight"},
    {"model.layers.{}.feed_forward.experts.{}.w3.weight", "blk.{}.ffn_up_exps.weight"},
    {"model.layers.{}.feed_forward.experts.{}.w2.weight", "blk.{}.ffn_down_exps.weight"},
};
// --- hyperparameters
constexpr ConfigRule kBackboneSizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", number},
    {"conv_kernel", "ssm.conv_kernel"},
};
constexpr ConfigRule kMambaSizes[] = {
    {"state_size", "ssm.state_size"},
    {"time_step_rank", "ssm.time_step_rank"},
    {"intermediate_size", "ssm.inner_size"},
};
constexpr ConfigRule kMamba2Sizes[] = {
    {"state_size", "ssm.state_size"},
    {"n_groups", "ssm.group_count"},
    {"num_heads", "ssm.time_step_rank"},
};
constexpr TensorRule kNemotronExperts[] = {
    {"layers.{}.mixer.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"layers.{}.mixer.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"layers.{}.mixer.experts.{}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
    {"layers.{}.mixer.experts.{}.down_proj.weight", "blk.{}.ffn_down_exps.weight"},
    {"layers.{}.mixer.experts.up_proj", "blk.{}.ffn_up_exps.weight"},
    {"layers.{}.mixer.experts.down_proj", "blk.{}.ffn_down_exps.weight"},
    {"layers.{}.mixer.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"layers.{}.mixer.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
    {"layers.{}.mixer.fc1_latent_proj.weight", "blk.{}.ffn_latent_down.weight"},
    {"layers.{}.mixer.fc2_latent_proj.weight", "blk.{}.ffn_latent_up.weight"},
};
constexpr ConfigRule kNemotronMoe[] = {
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"moe_shared_expert_intermediate_size", "expert_shared_feed_forward_length"},
    {"routed_scaling_factor", "expert_weights_scale", number},
    {"n_group", "expert_group_count", integer, false},
    {"topk_group", "expert_group_used_count", integer, false},
    {"moe_latent_size", "moe_latent_size", integer, false},
};
constexpr ConfigRule kNemotronSizes[] = {
    {"hidden_size", "embedding_length"},
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", number},
    {"num_attention_heads", "attention.head_count"},
    {"conv_kernel", "ssm.conv_kernel"},
    {"ssm_state_size", "ssm.state_size"},
    {"n_groups", "ssm.group_count"},
    {"mamba_num_heads", "ssm.time_step_rank"},
};
constexpr ConfigRule kJambaSizes[] = {
    {"mamba_d_conv", "ssm.conv_kernel"},          {"mamba_d_state", "ssm.state_size"},
    {"mamba_dt_rank", "ssm.time_step_rank"},      {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
};
constexpr ConfigRule kSharedExperts[] = {
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"shared_intermediate_size", "expert_shared_feed_forward_length"},
};
constexpr ConfigRule kConvolution[] = {
    {"norm_eps", "attention.layer_norm_rms_epsilon", number},
    {"conv_L_cache", "shortconv.l_cache"},
};
constexpr ConfigRule kLfm2Moe[] = {
    {"num_experts", "expert_count", integer, false},
    {"num_local_experts", "expert_count", integer, false},  // the same, in newer files
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"num_dense_layers", "leading_dense_block_count"},
};

// --- what rows of the table cannot say
void have_no_attention(std::string_view prefix, GgufWriter& to) {
  set_size(prefix, "attention.head_count", 0, to);
  set_size(prefix, "feed_forward_length", 0, to);
}

void more_mamba(const JsonView&, std::string_view prefix, GgufWriter& to) {
  have_no_attention(prefix, to);
}

// Files have one epsilon for all norms; that of the mixer's (mixer_rms_eps) differs by 1e-5 at
// most.
void more_falcon_mamba(const JsonView&, std::string_view prefix, GgufWriter& to) {
  have_no_attention(prefix, to);
  to.set(fmt::format("{}ssm.dt_b_c_rms", prefix), true);
}

void more_mamba2(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  have_no_attention(prefix, to);
  set_size(prefix, "ssm.inner_size", size_of(config, "num_heads") * size_of(config, "head_dim"),
           to);
}

// The heads of keys in each layer: none in those that are not attention.
void set_attention_layers(const JsonView& config, std::string_view prefix, const auto& is_attention,
                          GgufWriter& to) {
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096),
                heads = config["num_key_value_heads"].integer_or(
                    config["num_attention_heads"].integer(1, 1 << 16), 1, 1 << 16);
  std::vector<int32_t> all;
  for (int64_t i = 0; i < layers; ++i)
    all.push_back(is_attention(i) ? static_cast<int32_t>(heads) : 0);
  to.set(fmt::format("{}attention.head_count_kv", prefix), all);
}

std::vector<std::string> kinds_of(const JsonView& config, const char* key) {
  std::vector<std::string> kinds;
  for (const JsonView& each : config[key].items()) kinds.push_back(each.string());
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  if (kinds.size() != static_cast<size_t>(layers))
    refuse(fmt::format("{} names {} layers of {}", key, kinds.size(), layers));
  return kinds;
}

void set_attention_kinds(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const std::vector<std::string> kinds = kinds_of(config, "layer_types");
  set_attention_layers(
      config, prefix,
      [&](int64_t i) {
        return kinds[static_cast<size_t>(i)].ends_with("attention") &&
               kinds[static_cast<size_t>(i)] != "linear_attention";
      },
      to);
}

void more_jamba(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t period = config["attn_layer_period"].integer(1, 4096),
                offset = config["attn_layer_offset"].integer(0, 4096);
  set_attention_layers(
      config, prefix, [&](int64_t i) { return i % period == offset; }, to);
  set_size(prefix, "ssm.inner_size",
           size_of(config, "mamba_expand") * size_of(config, "hidden_size"), to);
}

void more_granite_hybrid(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_attention_kinds(config, prefix, to);
  set_size(prefix, "ssm.inner_size",
           size_of(config, "mamba_n_heads") * size_of(config, "mamba_d_head"), to);
  if (config["position_embedding_type"].string_or("nope") == "nope")
    to.set(fmt::format("{}rope.scaling.finetuned", prefix), false);
}

// Granite 4 without experts has the shared one as its feed-forward layer.
bool has_no_experts(const JsonView& config) {
  return config["num_local_experts"].integer_or(0, 0, 1 << 20) == 0;
}

void more_granite_dense(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_granite_hybrid(config, prefix, to);
  set_size(prefix, "feed_forward_length", size_of(config, "shared_intermediate_size"), to);
}

// A block for each layer: Mamba (M), attention (*) or feed-forward (-).
std::string nemotron_pattern(const JsonView& config) {
  if (const JsonView pattern = config["hybrid_override_pattern"]) return pattern.string();
  std::string pattern;
  for (const JsonView& each : config["layers_block_type"].items()) {
    const std::string kind = each.string();
    pattern += kind == "full_attention" || kind == "attention" ? '*'
               : kind == "mlp"                                 ? '-'
               : kind == "linear_attention" || kind == "mamba" ? 'M'
                                                               : 'E';
  }
  return pattern;
}

void more_nemotron_h(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const std::string pattern = nemotron_pattern(config);
  const auto heads = static_cast<int32_t>(config["num_key_value_heads"].integer(1, 1 << 16)),
             wide = static_cast<int32_t>(size_of(config, "intermediate_size")),
             expert_wide =
                 static_cast<int32_t>(config["moe_intermediate_size"].integer_or(1, 1, 1 << 20));
  std::vector<int32_t> key_heads, widths;
  for (const char kind : pattern) {
    if (kind != 'M' && kind != '*' && kind != '-' && kind != 'E')
      refuse(fmt::format("hybrid_override_pattern has the unknown kind {}",
                         printable(std::string(1, kind))));
    key_heads.push_back(kind == '*' ? heads : 0);
    widths.push_back(kind == '-' ? wide : kind == 'E' ? expert_wide : 0);
  }
  set_size(prefix, "block_count", static_cast<int64_t>(pattern.size()), to);
  to.set(fmt::format("{}attention.head_count_kv", prefix), key_heads);
  to.set(fmt::format("{}feed_forward_length", prefix), widths);
  set_size(prefix, "ssm.inner_size",
           size_of(config, "mamba_num_heads") * size_of(config, "mamba_head_dim"), to);
}

bool has_nemotron_experts(const JsonView& config) {
  return nemotron_pattern(config).find('E') != std::string::npos;
}

void more_nemotron_h_moe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_nemotron_h(config, prefix, to);
  if (nemotron_pattern(config).find('-') != std::string::npos)
    refuse("layers have experts and feed-forward blocks; Prism's Nemotron-H has one of them");
  to.set(fmt::format("{}expert_weights_norm", prefix), config["norm_topk_prob"].boolean_or(true));
}

void more_falcon_h1(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t inner = size_of(config, "mamba_d_ssm");
  set_size(prefix, "ssm.inner_size", inner, to);
  if (inner != size_of(config, "mamba_n_heads") * size_of(config, "mamba_d_head"))
    refuse("mamba_d_ssm is not mamba_n_heads times mamba_d_head");
}

// The model's multipliers, which GGUF files have in their weights.
std::vector<RowFactor> falcon_h1_factors(const JsonView& config, std::string_view to, int64_t) {
  const auto one = [&](const char* key) { return config[key].number_or(1, -1e6, 1e6); };
  const auto in_list = [&](const char* key, size_t at) {
    const std::vector<JsonView> all = config[key].items();
    return at < all.size() ? all[at].number(-1e6, 1e6) : 1;
  };
  constexpr int64_t kAll = int64_t{1} << 40;
  const auto whole = [&](double factor) { return std::vector{RowFactor{kAll, factor}}; };
  const double read = one("attention_in_multiplier");
  if (to == "token_embd.weight") return whole(one("embedding_multiplier"));
  if (to == "output.weight") return whole(one("lm_head_multiplier"));
  if (to == "blk.{}.attn_q.weight" || to == "blk.{}.attn_v.weight") return whole(read);
  if (to == "blk.{}.attn_k.weight") return whole(read * one("key_multiplier"));
  if (to == "blk.{}.attn_output.weight") return whole(one("attention_out_multiplier"));
  if (to == "blk.{}.ssm_out.weight") return whole(one("ssm_out_multiplier"));
  if (to == "blk.{}.ffn_gate.weight") return whole(in_list("mlp_multipliers", 0));
  if (to == "blk.{}.ffn_down.weight") return whole(in_list("mlp_multipliers", 1));
  if (to != "blk.{}.ssm_in.weight") return {};
  // Rows of the gate, the values, the two parts of the state, and the steps.
  const int64_t inner = size_of(config, "mamba_d_ssm"),
                state = size_of(config, "mamba_n_groups") * size_of(config, "mamba_d_state");
  std::vector<RowFactor> parts = {
      {inner, 1}, {inner, 1}, {state, 1}, {state, 1}, {size_of(config, "mamba_n_heads"), 1}};
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i].factor = one("ssm_in_multiplier") * in_list("ssm_multipliers", i);
  return parts;
}

// The width of feed-forward blocks is two thirds of the one stated, rounded up.
int64_t lfm2_width(const JsonView& config) {
  const char* const key = config["block_ff_dim"] ? "block_ff_dim" : "intermediate_size";
  int64_t wide = size_of(config, key);
  if (!config["block_auto_adjust_ff_dim"].boolean_or(false)) return wide;
  wide = 2 * wide / 3;
  if (const JsonView by = config["block_ffn_dim_multiplier"])
    wide = static_cast<int64_t>(by.number(1e-3, 1e3) * static_cast<double>(wide));
  const int64_t step = config["block_multiple_of"].integer_or(256, 1, 1 << 16);
  return (wide + step - 1) / step * step;
}

void more_lfm2(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_attention_kinds(config, prefix, to);
  set_size(prefix, "feed_forward_length", lfm2_width(config), to);
}

void more_lfm2_moe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_attention_kinds(config, prefix, to);
  constexpr uint32_t kSigmoid = 2;
  to.set(fmt::format("{}expert_gating_func", prefix), kSigmoid);
}

}  // namespace

std::vector<HfArchitecture> hf_recurrent_decoders() {
  constexpr int64_t kNoLimit = 1 << 20;
  const std::vector<Expectation> plain_mamba = {kSilu, {"use_bias", {"false"}}};
  return {
      {.name = "MambaForCausalLM",
       .gguf = "mamba",
       .tensors = {kBackbone, kMixer},
       .config = {kBackboneSizes, kMambaSizes},
       .expected = plain_mamba,
       .more = more_mamba,
       .is_rotated = false,
       .is_tied = true,
       .prefix = "backbone.",
       .has_heads = false,
       .default_context = kNoLimit},
      {.name = "FalconMambaForCausalLM",
       .gguf = "mamba",
       .tensors = {kBackbone, kMixer},
       .config = {kBackboneSizes, kMambaSizes},
       .expected = plain_mamba,
       .more = more_falcon_mamba,
       .is_rotated = false,
       .is_tied = true,
       .prefix = "backbone.",
       .has_heads = false,
       .default_context = kNoLimit},
      {.name = "Mamba2ForCausalLM",
       .gguf = "mamba2",
       .tensors = {kBackbone, kMixer},
       .config = {kBackboneSizes, kMamba2Sizes},
       .expected = plain_mamba,
       .more = more_mamba2,
       .is_rotated = false,
       .prefix = "backbone.",
       .has_heads = false,
       .default_context = kNoLimit},
      {.name = "NemotronHForCausalLM",
       .gguf = "nemotron_h_moe",
       .tensors = {kBackbone, kMixer, kNemotronMixer, kNemotronExperts},
       .config = {kNemotronSizes, kNemotronMoe},
       .expected = {{"mlp_hidden_act", {R"("relu2")"}},
                    {"mamba_hidden_act", {R"("silu")"}},
                    {"use_bias", {"false"}},
                    {"mlp_bias", {"false"}},
                    {"attention_bias", {"false"}}},
       .more = more_nemotron_h_moe,
       .is_rotated = false,
       .prefix = "backbone.",
       .fits = has_nemotron_experts},
      {.name = "NemotronHForCausalLM",
       .gguf = "nemotron_h",
       .tensors = {kBackbone, kMixer, kNemotronMixer},
       .config = {kNemotronSizes},
       .expected = {{"mlp_hidden_act", {R"("relu2")"}},
                    {"mamba_hidden_act", {R"("silu")"}},
                    {"use_bias", {"false"}},
                    {"mlp_bias", {"false"}},
                    {"attention_bias", {"false"}}},
       .more = more_nemotron_h,
       .is_rotated = false,
       .prefix = "backbone."},
      {.name = "JambaForCausalLM",
       .gguf = "jamba",
       .tensors = {kEnds, kPreNorms, kQueryKey, kValueOutput, kMambaBeside, kJambaMixer},
       .config = {kSizes, kDecoder, kJambaSizes},
       .expected = {kSilu, {"mamba_proj_bias", {"false"}}},
       .more = more_jamba,
       .is_rotated = false},
      {.name = "FalconH1ForCausalLM",
       .gguf = "falcon-h1",
       .tensors = {kEnds, kPreNorms, kQueryKey, kValueOutput, kMambaBeside},
       .config = {kSizes, kDecoder, kMambaBesideSizes},
       .expected = {kSilu, {"mamba_norm_before_gate", {"false"}}, {"projectors_bias", {"false"}}},
       .more = more_falcon_h1,
       .factors = falcon_h1_factors},
      {.name = "GraniteMoeHybridForCausalLM",
       .gguf = "granitehybrid",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kMambaBeside, kGraniteDense},
       .config = {kSizes, kDecoder, kGraniteScales, kMambaBesideSizes},
       .expected = {kSilu, {"mamba_proj_bias", {"false"}}},
       .more = more_granite_dense,
       .fits = has_no_experts},
      {.name = "GraniteMoeHybridForCausalLM",
       .gguf = "granitehybrid",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kMambaBeside, kGraniteExperts,
                   kGraniteShared},
       .config = {kSizes, kDecoder, kGraniteScales, kSharedExperts, kMambaBesideSizes},
       .expected = {kSilu, {"mamba_proj_bias", {"false"}}},
       .more = more_granite_hybrid},
      {.name = "GraniteMoeSharedForCausalLM",
       .gguf = "granitemoe",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kGraniteExperts, kGraniteShared},
       .config = {kSizes, kDecoder, kGraniteScales, kSharedExperts},
       .expected = {kSilu}},
      {.name = "Lfm2ForCausalLM",
       .gguf = "lfm2",
       .tensors = {kEnds, kQueryKey, kValueOutput, kLfm2},
       .config = {kSizes, kConvolution},
       .expected = {{"conv_bias", {"false"}}},
       .more = more_lfm2,
       .is_tied = true},
      {.name = "Lfm2MoeForCausalLM",
       .gguf = "lfm2moe",
       .tensors = {kEnds, kQueryKey, kValueOutput, kLfm2, kLfm2Experts},
       .config = {kSizes, kConvolution, kLfm2Moe},
       .expected = {{"conv_bias", {"false"}},
                    {"norm_topk_prob", {"true"}},
                    {"routed_scaling_factor", {"1", "1.0"}}},
       .more = more_lfm2_moe,
       .is_tied = true},
  };
}

}  // namespace prism::llm
