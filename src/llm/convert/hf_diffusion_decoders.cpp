// The Hugging Face decoders that fill text in instead of continuing it: LLaDA, Dream, RND1.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kLlada[] = {
    {"model.transformer.wte.weight", "token_embd.weight"},
    {"model.transformer.ff_out.weight", "output.weight"},
    {"model.transformer.ln_f.weight", "output_norm.weight"},
    {"model.transformer.blocks.{}.attn_norm.weight", "blk.{}.attn_norm.weight"},
    {"model.transformer.blocks.{}.q_proj.weight", "blk.{}.attn_q.weight", rotary},
    {"model.transformer.blocks.{}.k_proj.weight", "blk.{}.attn_k.weight", rotary},
    {"model.transformer.blocks.{}.v_proj.weight", "blk.{}.attn_v.weight"},
    {"model.transformer.blocks.{}.attn_out.weight", "blk.{}.attn_output.weight"},
    {"model.transformer.blocks.{}.ff_norm.weight", "blk.{}.ffn_norm.weight"},
    {"model.transformer.blocks.{}.ff_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.transformer.blocks.{}.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.transformer.blocks.{}.ff_out.weight", "blk.{}.ffn_down.weight"},
};

// --- hyperparameters
constexpr ConfigRule kLladaSizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"mlp_hidden_size", "feed_forward_length"},
};
constexpr ConfigRule kLladaMoe[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"num_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"expert_intermediate_size", "expert_feed_forward_length"},
};

// --- what rows of the table cannot say
// Every position sees every other. Programs that fill text in must know the token that stands for
// a gap, and whether a row's logits are for its own position or for the next one.
void see_all(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}attention.causal", prefix), false);
  if (const JsonView gap = config["mask_token_id"])
    to.set("tokenizer.ggml.mask_token_id", static_cast<uint32_t>(gap.integer(0, 1 << 24)));
}

void more_llada(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  see_all(config, prefix, to);
  to.set("diffusion.shift_logits", false);
}

void more_llada_moe(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_llada(config, prefix, to);
  for (const JsonView& each : config["moe_layer_freq"].items())
    if (each.integer() != 1)
      refuse("moe_layer_freq names layers without experts; Prism's LLaDA has experts in all");
  set_size(prefix, "feed_forward_length", size_of(config, "expert_intermediate_size"), to);
}

}  // namespace

std::vector<HfArchitecture> hf_diffusion_decoders() {
  return {
      {.name = "LLaDAModelLM",
       .gguf = "llada",
       .tensors = {kLlada},
       .config = {kLladaSizes, kDecoder},
       .expected = {{"block_type", {R"("llama")"}},
                    {"activation_type", {R"("silu")"}},
                    {"layer_norm_type", {R"("rms")"}},
                    {"rope", {"true"}},
                    {"alibi", {"false"}},
                    {"multi_query_attention", {"false"}},
                    {"attention_layer_norm", {"false"}},
                    {"input_emb_norm", {"false"}},
                    {"scale_logits", {"false"}},
                    {"clip_qkv", {}}},
       .more = more_llada},
      {.name = "LLaDAMoEModelLM",
       .gguf = "llada-moe",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kExperts},
       .config = {kLladaMoe, kDecoder},
       .expected = {kSilu,
                    {"norm_topk_prob", {"false"}},
                    {"qk_layernorm", {"true"}},
                    {"moe_router_score_function", {R"("softmax")"}},
                    {"moe_router_enable_expert_bias", {"false"}},
                    {"routed_scaling_factor", {"1", "1.0"}},
                    {"router_num_group", {}},
                    {"router_topk_group", {}},
                    {"clip_qkv", {}}},
       .more = more_llada_moe},
      {.name = "DreamModel",
       .gguf = "dream",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {kSilu},
       .more = see_all},
      {.name = "RND1",
       .gguf = "rnd1",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kExperts},
       .config = {kSizes, kDecoder, kQwenMoe},
       .expected = {kSilu,
                    {"mlp_only_layers", {"[]"}},
                    {"decoder_sparse_step", {"1"}},
                    {"norm_topk_prob", {"true"}}},
       .more = see_all},
  };
}

}  // namespace prism::llm
