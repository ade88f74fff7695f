// The Hugging Face decoders PLaMo 1, 2 and 3.
#include <algorithm>

#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kPlamoEnds[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};
constexpr TensorRule kPlamo[] = {
    {"model.layers.layers.{}.norm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", by_turns},
    {"model.layers.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"model.layers.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"model.layers.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight",
     by_turns_columns},
    {"model.layers.layers.{}.self_attn.rotary_emb.inv_freq", ""},
    {"model.layers.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
};
// The weights of norms are differences. Files have the norms behind a block without ".weight".
constexpr TensorRule kPlamoBlocks[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight", add_one},
    {"lm_head.weight", "output.weight"},
    {"model.layers.layers.{}.pre_mixer_norm.weight", "blk.{}.attn_norm.weight", add_one},
    {"model.layers.layers.{}.post_mixer_norm.weight", "blk.{}.post_attention_norm", add_fifth},
    {"model.layers.layers.{}.pre_mlp_norm.weight", "blk.{}.ffn_norm.weight", add_one},
    {"model.layers.layers.{}.post_mlp_norm.weight", "blk.{}.post_ffw_norm", add_small},
    {"model.layers.layers.{}.mixer.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"model.layers.layers.{}.mixer.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kPlamo2Mixers[] = {
    {"model.layers.layers.{}.mixer.q_weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.layers.{}.mixer.k_weight", "blk.{}.attn_k_norm.weight"},
    {"model.layers.layers.{}.mixer.in_proj.weight", "blk.{}.ssm_in.weight"},
    {"model.layers.layers.{}.mixer.conv1d.weight", "blk.{}.ssm_conv1d.weight", squeezed},
    {"model.layers.layers.{}.mixer.bcdt_proj.weight", "blk.{}.ssm_x.weight"},
    {"model.layers.layers.{}.mixer.dt_proj.weight", "blk.{}.ssm_dt.weight"},
    {"model.layers.layers.{}.mixer.dt_bias", "blk.{}.ssm_dt.bias"},
    {"model.layers.layers.{}.mixer.A_log", "blk.{}.ssm_a", negative_exp},
    {"model.layers.layers.{}.mixer.D", "blk.{}.ssm_d"},
    {"model.layers.layers.{}.mixer.out_proj.weight", "blk.{}.ssm_out.weight"},
    {"model.layers.layers.{}.mixer.B_norm_weight", "blk.{}.ssm_b_norm"},
    {"model.layers.layers.{}.mixer.C_norm_weight", "blk.{}.ssm_c_norm"},
    {"model.layers.layers.{}.mixer.dt_norm_weight", "blk.{}.ssm_dt_norm"},
};
constexpr TensorRule kPlamo3Norms[] = {
    {"model.layers.layers.{}.mixer.q_norm.weight", "blk.{}.attn_q_norm.weight", add_one},
    {"model.layers.layers.{}.mixer.k_norm.weight", "blk.{}.attn_k_norm.weight", add_one},
};

// --- hyperparameters
constexpr ConfigRule kRmsEpsilon[] = {
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", number},
};
constexpr ConfigRule kMamba[] = {
    {"mamba_d_state", "ssm.state_size"},
    {"mamba_d_conv", "ssm.conv_kernel"},
    {"mamba_num_heads", "ssm.time_step_rank"},
};

// --- what rows of the table cannot say
// num_key_value_heads is not what the layers have.
void more_plamo(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t heads = size_of(config, "num_attention_heads"),
                shared_by = size_of(config, "n_shared_head");
  if (heads % shared_by != 0)
    refuse(fmt::format("n_shared_head is {}, which does not divide {} heads", shared_by, heads));
  set_size(prefix, "attention.head_count_kv", heads / shared_by, to);
}

bool is_mamba(const JsonView& config, int64_t layer) {
  if (!config["mamba_enabled"].boolean_or(true)) return false;
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096),
                step = config["mamba_step"].integer_or(2, 2, 4096);
  return layers <= step / 2 ? layer != layers - 1 : layer % step != step / 2;
}

// Layers with attention that full_attention_idx does not name see a window.
int64_t plamo2_context(const JsonView& config) {
  const std::vector<JsonView> full = config["full_attention_idx"].items();
  bool has_windows = false;
  for (int64_t i = 0; i < config["num_hidden_layers"].integer(1, 4096); ++i)
    has_windows = has_windows ||
                  (!is_mamba(config, i) && std::ranges::none_of(full, [&](const JsonView& each) {
                    return each.integer() == i;
                  }));
  return has_windows ? config["attention_window_size"].integer_or(0, 0, 1 << 30) : 0;
}

void more_plamo2(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  std::vector<int32_t> heads, kv_heads;
  for (int64_t i = 0; i < layers; ++i) {
    const bool attends = !is_mamba(config, i);
    heads.push_back(attends ? static_cast<int32_t>(size_of(config, "num_attention_heads")) : 0);
    kv_heads.push_back(attends ? static_cast<int32_t>(size_of(config, "num_key_value_heads")) : 0);
  }
  to.set(fmt::format("{}attention.head_count", prefix), heads);
  to.set(fmt::format("{}attention.head_count_kv", prefix), kv_heads);
  set_size(prefix, "ssm.inner_size",
           size_of(config, "mamba_num_heads") * size_of(config, "hidden_size_per_head"), to);
  to.set(fmt::format("{}ssm.group_count", prefix), uint32_t{0});
  // The norms of q and k have this epsilon, whatever the others have; files have one for all.
  constexpr double kHeadEpsilon = 1e-6;
  if (const double epsilon = config["rms_norm_eps"].number(); epsilon != kHeadEpsilon)
    refuse(fmt::format("rms_norm_eps is {}; Prism's PLaMo 2 has {}", epsilon, kHeadEpsilon));
}

// window_size counts the positions before a token, GGUF the token itself, too.
void more_plamo3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const JsonView window = config[config["sliding_window"] ? "sliding_window" : "window_size"];
  set_size(prefix, "attention.sliding_window", window.integer(1, 1 << 30) + 1, to);
  set_size(prefix, "attention.sliding_window_pattern",
           config["sliding_window_pattern"].integer(1, 4096), to);
  to.set(fmt::format("{}rope.freq_base_swa", prefix),
         static_cast<float>(config["rope_local_theta"].number_or(1e4, 1e-3, 1e12)));
}

}  // namespace

std::vector<HfArchitecture> hf_plamo_decoders() {
  return {
      {.name = "PlamoForCausalLM",
       .gguf = "plamo",
       .tensors = {kPlamoEnds, kPlamo},
       .config = {kSizes, kRmsEpsilon},
       .expected = {kSilu},
       .more = more_plamo,
       .default_context = 4096},
      {.name = "Plamo2ForCausalLM",
       .gguf = "plamo2",
       .tensors = {kPlamoBlocks, kPlamo2Mixers},
       .config = {kSizes, kRmsEpsilon, kMamba},
       .expected = {kSilu, {"linear_type", {R"("normal")"}}},
       .more = more_plamo2,
       .is_tied = true,
       .right_up_to = plamo2_context},
      {.name = "Plamo3ForCausalLM",
       .gguf = "plamo3",
       .tensors = {kPlamoBlocks, kPlamo3Norms},
       .config = {kSizes, kDecoder},
       .expected = {kSilu, {"linear_type", {R"("normal")"}}, {"image_token_id", {}}},
       .has_windows = true,
       .more = more_plamo3,
       .is_tied = true},
  };
}

}  // namespace prism::llm
