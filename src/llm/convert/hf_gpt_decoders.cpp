// The Hugging Face decoders with the names of GPT-2 or its successors: fused q, k and v, settings
// with names of their own.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kGpt2Ends[] = {
    {"wte.weight", "token_embd.weight"},   {"wpe.weight", "position_embd.weight", cut},
    {"ln_f.weight", "output_norm.weight"}, {"ln_f.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},
};
constexpr TensorRule kGpt2Layers[] = {
    {"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    {"h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    {"h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    {"h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    {"h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    {"h.{}.attn.bias", ""},  // the causal mask
    {"h.{}.attn.masked_bias", ""},
};
constexpr TensorRule kGpt2Matrices[] = {
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", transposed},
    {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", transposed},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", transposed},
    {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", transposed},
};
constexpr TensorRule kBigCodeMatrices[] = {
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight"},
    {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight"},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"},
    {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
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
constexpr TensorRule kWordEmbeddings[] = {
    {"word_embeddings.weight", "token_embd.weight"},
    {"ln_f.weight", "output_norm.weight"},
    {"ln_f.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},
    {"h.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"h.{}.input_layernorm.bias", "blk.{}.attn_norm.bias"},
    {"h.{}.self_attention.dense.weight", "blk.{}.attn_output.weight"},
    {"h.{}.mlp.dense_h_to_4h.weight", "blk.{}.ffn_up.weight"},
    {"h.{}.mlp.dense_4h_to_h.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kFalcon[] = {
    {"h.{}.ln_attn.weight", "blk.{}.attn_norm_2.weight"},
    {"h.{}.ln_attn.bias", "blk.{}.attn_norm_2.bias"},
    {"h.{}.ln_mlp.weight", "blk.{}.attn_norm.weight"},
    {"h.{}.ln_mlp.bias", "blk.{}.attn_norm.bias"},
    {"h.{}.self_attention.query_key_value.weight", "blk.{}.attn_qkv.weight", split_groups},
    {"h.{}.self_attention.rotary_emb.inv_freq", ""},
};
constexpr TensorRule kBloom[] = {
    {"word_embeddings_layernorm.weight", "token_embd_norm.weight"},
    {"word_embeddings_layernorm.bias", "token_embd_norm.bias"},
    {"h.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"h.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias"},
    {"h.{}.self_attention.query_key_value.weight", "blk.{}.attn_qkv.weight", split_heads},
    {"h.{}.self_attention.query_key_value.bias", "blk.{}.attn_qkv.bias", split_heads},
    {"h.{}.self_attention.dense.bias", "blk.{}.attn_output.bias"},
    {"h.{}.mlp.dense_h_to_4h.bias", "blk.{}.ffn_up.bias"},
    {"h.{}.mlp.dense_4h_to_h.bias", "blk.{}.ffn_down.bias"},
};
constexpr TensorRule kMpt[] = {
    {"wte.weight", "token_embd.weight"},
    {"norm_f.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"blocks.{}.norm_1.weight", "blk.{}.attn_norm.weight"},
    {"blocks.{}.norm_2.weight", "blk.{}.ffn_norm.weight"},
    {"blocks.{}.attn.Wqkv.weight", "blk.{}.attn_qkv.weight"},
    {"blocks.{}.attn.out_proj.weight", "blk.{}.attn_output.weight"},
    {"blocks.{}.ffn.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"blocks.{}.ffn.down_proj.weight", "blk.{}.ffn_down.weight"},
};

// --- hyperparameters
constexpr ConfigRule kLayerNormEpsilon[] = {
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", number},
};
constexpr ConfigRule kMaybeEpsilon[] = {
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", number, false},
};
constexpr ConfigRule kLayerNormEps[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", number},
};

// --- what rows of the table cannot say
void more_gpt_neox(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  check_rotated_part(config, prefix, to);
  to.set(fmt::format("{}use_parallel_residual", prefix),
         config["use_parallel_residual"].boolean_or(true));
}

void more_big_code(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  if (config["multi_query"].boolean_or(true))
    to.set(fmt::format("{}attention.head_count_kv", prefix), uint32_t{1});
}

void more_falcon(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t heads = config["num_attention_heads"].integer(1, 1 << 16);
  const char* const name = config["num_kv_heads"] ? "num_kv_heads" : "n_head_kv";
  // The first files of the larger models (RWForCausalLM) do not name their layers otherwise.
  const bool is_grouped =
      config["new_decoder_architecture"].boolean_or(static_cast<bool>(config["n_head_kv"]));
  const int64_t shared = is_grouped ? config[name].integer_or(heads, 1, 1 << 16)
                         : config["multi_query"].boolean_or(true) ? 1
                                                                  : heads;
  to.set(fmt::format("{}attention.head_count_kv", prefix), static_cast<uint32_t>(shared));
}

void more_mpt(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const JsonView attention = config["attn_config"];
  if (!attention["alibi"].boolean_or(true) || attention["qk_ln"].boolean_or(false) ||
      attention["rope"].boolean_or(false) || attention["softmax_scale"])
    refuse(
        fmt::format("attn_config is {}; Prism's MPT has alibi, and neither qk_ln, rope nor "
                    "softmax_scale",
                    printable(attention.json().dump())));
  to.set(fmt::format("{}attention.max_alibi_bias", prefix),
         static_cast<float>(attention["alibi_bias_max"].number_or(8, 0, 1e6)));
  if (const JsonView clip = attention["clip_qkv"])
    to.set(fmt::format("{}attention.clamp_kqv", prefix), static_cast<float>(clip.number(0, 1e6)));
}

}  // namespace

// Files of Pythia, Falcon and MPT name or mean the exact GELU; its approximation is close enough.
std::vector<HfArchitecture> hf_gpt_decoders() {
  const std::vector<Expectation> gpt2 = {
      {"activation_function", {R"("gelu_new")", R"("gelu_pytorch_tanh")"}},
      {"scale_attn_weights", {"true"}},
      {"scale_attn_by_inverse_layer_idx", {"false"}},
      {"add_cross_attention", {"false"}}};
  const std::vector<std::string_view> any_gelu = {R"("gelu")", R"("gelu_new")", R"("gelu_fast")",
                                                  R"("gelu_pytorch_tanh")"};
  return {
      {.name = "GPT2LMHeadModel",
       .gguf = "gpt2",
       .tensors = {kGpt2Ends, kGpt2Layers, kGpt2Matrices},
       .config = {kSizes, kLayerNormEpsilon},
       .expected = gpt2,
       .is_rotated = false,
       .is_tied = true,
       .prefix = "transformer."},
      {.name = "GPTBigCodeForCausalLM",
       .gguf = "starcoder",
       .tensors = {kGpt2Ends, kGpt2Layers, kBigCodeMatrices},
       .config = {kSizes, kLayerNormEpsilon},
       .expected = gpt2,
       .more = more_big_code,
       .is_rotated = false,
       .is_tied = true,
       .prefix = "transformer."},
      {.name = "GPTNeoXForCausalLM",
       .gguf = "gptneox",
       .tensors = {kGptNeox},
       .config = {kSizes, kLayerNormEps},
       .expected = {{"hidden_act", any_gelu}},
       .more = more_gpt_neox,
       .prefix = "gpt_neox."},
      {.name = "FalconForCausalLM",
       .gguf = "falcon",
       .tensors = {kWordEmbeddings, kFalcon},
       .config = {kSizes, kLayerNormEpsilon},
       .expected = {{"activation", any_gelu},
                    {"alibi", {"false"}},
                    {"bias", {"false"}},
                    {"parallel_attn", {"true"}}},
       .more = more_falcon,
       .is_tied = true,
       .prefix = "transformer.",
       .default_context = 2048},
      {.name = "BloomForCausalLM",
       .gguf = "bloom",
       .tensors = {kWordEmbeddings, kBloom},
       .config = {kSizes, kLayerNormEpsilon},
       .expected = {{"apply_residual_connection_post_layernorm", {"false"}}},
       .is_rotated = false,
       .is_tied = true,
       .prefix = "transformer.",
       .default_context = 2048},
      {.name = "MptForCausalLM",
       .gguf = "mpt",
       .tensors = {kMpt},
       .config = {kSizes, kMaybeEpsilon},
       .expected = {{"no_bias", {"true"}},
                    {"logit_scale", {}},
                    {"norm_type", {R"("low_precision_layernorm")", R"("layernorm")"}}},
       .more = more_mpt,
       .is_rotated = false,
       .is_tied = true,
       .prefix = "transformer."},
  };
}

}  // namespace prism::llm
