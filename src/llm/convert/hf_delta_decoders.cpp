// The Hugging Face decoders with layers of the gated delta rule beside attention.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kDeltaNorms[] = {
    {"model.norm.weight", "output_norm.weight", add_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", add_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight",
     add_one},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", add_one},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", add_one},
};
constexpr TensorRule kDelta[] = {
    {"model.layers.{}.linear_attn.A_log", "blk.{}.ssm_a", negative_exp},
    {"model.layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias"},
    {"model.layers.{}.linear_attn.conv1d.weight", "blk.{}.ssm_conv1d.weight", squeezed},
    {"model.layers.{}.linear_attn.in_proj_qkvz.weight", "blk.{}.ssm_in.weight"},
    {"model.layers.{}.linear_attn.in_proj_ba.weight", "blk.{}.ssm_ba.weight"},
    {"model.layers.{}.linear_attn.norm.weight", "blk.{}.ssm_norm.weight"},
    {"model.layers.{}.linear_attn.out_proj.weight", "blk.{}.ssm_out.weight"},
};

constexpr TensorRule kTiledDelta[] = {
    {"model.layers.{}.linear_attn.A_log", "blk.{}.ssm_a", tiled_negative_exp},
    {"model.layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias", tiled},
    {"model.layers.{}.linear_attn.conv1d.weight", "blk.{}.ssm_conv1d.weight", tiled},
    {"model.layers.{}.linear_attn.in_proj_qkv.weight", "blk.{}.attn_qkv.weight", tiled},
    {"model.layers.{}.linear_attn.in_proj_z.weight", "blk.{}.attn_gate.weight", tiled},
    {"model.layers.{}.linear_attn.in_proj_a.weight", "blk.{}.ssm_alpha.weight", tiled},
    {"model.layers.{}.linear_attn.in_proj_b.weight", "blk.{}.ssm_beta.weight", tiled},
    {"model.layers.{}.linear_attn.norm.weight", "blk.{}.ssm_norm.weight"},
    {"model.layers.{}.linear_attn.out_proj.weight", "blk.{}.ssm_out.weight", tiled_columns},
};

// --- hyperparameters
constexpr ConfigRule kDeltaSizes[] = {
    {"linear_conv_kernel_dim", "ssm.conv_kernel"},
    {"linear_key_head_dim", "ssm.state_size"},
    {"linear_num_key_heads", "ssm.group_count"},
    {"linear_num_value_heads", "ssm.time_step_rank"},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", integer, false},
};

// --- what rows of the table cannot say
void more_qwen3_next(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  check_rotated_part(config, prefix, to);
  const int64_t interval = config["full_attention_interval"].integer_or(4, 1, 4096);
  set_size(prefix, "full_attention_interval", interval, to);
  check_layers(config, "layer_types", [&](int64_t layer, const JsonView& type) {
    return type.string() == ((layer + 1) % interval == 0 ? "full_attention" : "linear_attention");
  });
  set_size(prefix, "ssm.inner_size",
           size_of(config, "linear_num_value_heads") * size_of(config, "linear_value_head_dim"),
           to);
}

}  // namespace

std::vector<HfArchitecture> hf_delta_decoders() {
  return {
      {.name = "Qwen3NextForCausalLM",
       .gguf = "qwen3next",
       .tensors = {kEnds, kDeltaNorms, kQueryKey, kValueOutput, kDelta, kExperts, kSharedExpert},
       .config = {kSizes, kDecoder, kQwenMoe, kDeltaSizes},
       .expected = {kSilu,
                    {"norm_topk_prob", {"true"}},
                    {"mlp_only_layers", {"[]"}},
                    {"decoder_sparse_step", {"1"}}},
       .more = more_qwen3_next},
      {.name = "Qwen3_5ForCausalLM",
       .gguf = "qwen35",
       .tensors = {kEnds, kDeltaNorms, kQueryKey, kValueOutput, kTiledDelta, kFeedForward},
       .config = {kSizes, kDecoder, kDeltaSizes},
       .expected = {kSilu},
       .more = more_qwen3_next},
      {.name = "Qwen3_5MoeForCausalLM",
       .gguf = "qwen35moe",
       .tensors = {kEnds, kDeltaNorms, kQueryKey, kValueOutput, kTiledDelta, kExperts,
                   kSharedExpert},
       .config = {kSizes, kDecoder, kQwenMoe, kDeltaSizes},
       .expected = {kSilu, {"norm_topk_prob", {"true"}}},
       .more = more_qwen3_next},
  };
}

}  // namespace prism::llm
