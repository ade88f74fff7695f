// The Hugging Face decoders of Grok 1 and 2.
#include <algorithm>
#include <cmath>

#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kGrok2[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.pre_attn_norm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attn_norm.weight", "blk.{}.attn_output_norm.weight"},
    {"model.layers.{}.pre_moe_norm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.post_moe_norm.weight", "blk.{}.post_ffw_norm.weight"},
    {"model.layers.{}.block_sparse_moe.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w1.weight", "blk.{}.ffn_gate_exps.weight",
     sharded_rows},
    {"model.layers.{}.block_sparse_moe.experts.{}.w3.weight", "blk.{}.ffn_up_exps.weight",
     sharded_rows},
    {"model.layers.{}.block_sparse_moe.experts.{}.w2.weight", "blk.{}.ffn_down_exps.weight",
     sharded_columns},
};
constexpr TensorRule kGrok1[] = {
    {"transformer.in_out_embed.weight", "token_embd.weight"},
    {"transformer.rms_norm.weight", "output_norm.weight"},
    {"transformer.decoder_layer.{}.rms_norm.weight", "blk.{}.attn_norm.weight"},
    {"transformer.decoder_layer.{}.rms_norm_1.weight", "blk.{}.attn_output_norm.weight"},
    {"transformer.decoder_layer.{}.rms_norm_2.weight", "blk.{}.ffn_norm.weight"},
    {"transformer.decoder_layer.{}.rms_norm_3.weight", "blk.{}.layer_output_norm.weight"},
    {"transformer.decoder_layer.{}.multi_head_attention.query.weight", "blk.{}.attn_q.weight"},
    {"transformer.decoder_layer.{}.multi_head_attention.key.weight", "blk.{}.attn_k.weight"},
    {"transformer.decoder_layer.{}.multi_head_attention.value.weight", "blk.{}.attn_v.weight"},
    {"transformer.decoder_layer.{}.multi_head_attention.linear.weight",
     "blk.{}.attn_output.weight"},
    {"transformer.decoder_layer.{}.router.weight", "blk.{}.ffn_gate_inp.weight"},
    {"transformer.decoder_layer.{}.moe.{}.linear.weight", "blk.{}.ffn_gate_exps.weight"},
    {"transformer.decoder_layer.{}.moe.{}.linear_v.weight", "blk.{}.ffn_up_exps.weight"},
    {"transformer.decoder_layer.{}.moe.{}.linear_1.weight", "blk.{}.ffn_down_exps.weight"},
};

// --- hyperparameters
constexpr ConfigRule kGrokSizes[] = {
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length", integer, false},
    {"embedding_multiplier_scale", "embedding_scale", number},
    {"output_multiplier_scale", "logit_scale", number},
    {"final_logit_softcapping", "final_logit_softcapping", number, false},
};

// --- what rows of the table cannot say
// Of the scalings of the rotation, "original" is none, and the published one of YaRN leaves lengths
// as they are.
void set_grok_scaling(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const std::string kind = config["rope_type"].string_or("original");
  if (kind == "original" || kind == "default") return;
  if (kind != "yarn")
    refuse(fmt::format("rope_type is \"{}\"; Prism's grok has \"original\" and \"yarn\"",
                       printable(kind)));
  if (const double factor = config["extrapolation_factor"].number_or(1); factor != 1)
    refuse(fmt::format("extrapolation_factor is {}; Prism's grok has 1", factor));
  const auto set = [&](const char* key, double value) {
    to.set(fmt::format("{}rope.scaling.{}", prefix, key), static_cast<float>(value));
  };
  const double factor = config["scaling_factor"].number(1, 1e6);
  to.set(fmt::format("{}rope.scaling.type", prefix), "yarn");
  set_size(prefix, "rope.scaling.original_context_length",
           config["original_max_position_embeddings"].integer(1, 1 << 30), to);
  set("factor", factor);
  set("attn_factor", 1 / (0.1 * std::log(factor) + 1));
  set("yarn_beta_fast", config["beta_fast"].number_or(32, 1e-6, 1e6));
  set("yarn_beta_slow", config["beta_slow"].number_or(1, 1e-6, 1e6));
}

void more_grok(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const auto set = [&](const char* key, double value) {
    to.set(fmt::format("{}{}", prefix, key), static_cast<float>(value));
  };
  set("attention.output_scale",
      config["attn_output_multiplier"].number_or(
          1 / std::sqrt(static_cast<double>(head_length(config))), 0, 1e3));
  set("attn_logit_softcapping", config["attn_logit_softcapping"].number_or(30, 0, 1e6));
  set("router_logit_softcapping", 30);
  // As published; files without the key have weights whose sum is 1, and no cap of the router.
  to.set(fmt::format("{}expert_weights_norm", prefix), false);
  set_grok_scaling(config, prefix, to);
  // Attention is sharper behind these tokens, which Prism's layers do not know.
  if (const int64_t last = config["attn_temperature_len"].integer_or(-1, -1, 1 << 30); last > 0)
    set_size(prefix, "context_length",
             std::min(last, config["max_position_embeddings"].integer(1, 1 << 30)), to);
}

void check_dense_blocks(const HfFolder& folder, GgufWriter&) {
  const bool is_stated = JsonView(folder.config())["residual_moe"].boolean_or(false),
             is_there = folder.tensors().contains("model.layers.0.mlp.up_proj.weight");
  if (is_stated != is_there)
    refuse(
        fmt::format("residual_moe is {}, but the folder has {} model.layers.0.mlp.up_proj.weight",
                    is_stated, is_there ? "a" : "no"));
}

}  // namespace

std::vector<HfArchitecture> hf_grok_decoders() {
  const HfArchitecture grok2 = {
      .name = "Grok1ForCausalLM",
      .gguf = "grok",
      .tensors = {kEnds, kGrok2, kQueryKey, kValueOutput, kFeedForward, kGrok1},
      .config = {kSizes, kDecoder, kGrokSizes},
      .expected = {{"hidden_act", {R"("gelu")", R"("gelu_pytorch_tanh")"}},
                   {"router_logit_softcapping", {"30", "30.0"}},
                   {"rope_rotate_half_dims", {"false"}},
                   {"attn_factor", {"1", "1.0"}},
                   {"attn_logit_softcapping_method", {R"("tanh")"}},
                   {"sliding_window_size", {"-1"}},
                   {"global_attn_every_n", {"1"}}},
      .more = more_grok,
      .from_tensors = check_dense_blocks};
  HfArchitecture grok1 = grok2;
  grok1.name = "GrokForCausalLM";
  return {grok1, grok2};
}

}  // namespace prism::llm
