// The Hugging Face decoders that have the tensor names of Llama and whose code is in their folders,
// or was there at first.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kBaichuanAttention[] = {
    {"model.layers.{}.self_attn.W_pack.weight", "blk.{}.attn_qkv.weight", fused_rotary},
};
constexpr TensorRule kUnitHead[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight", unit_rows},
    {"model.layers.{}.self_attn.rotary_emb.inv_freq", ""},
};
constexpr TensorRule kMaincoderFeedForward[] = {
    {"model.layers.{}.feed_forward.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.feed_forward.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.feed_forward.down_proj.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kKormoNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.pre_attention_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.pre_mlp_layernorm.weight", "blk.{}.ffn_norm.weight"},
};
constexpr TensorRule kLinearAttention[] = {
    {"model.layers.{}.self_attn.linear_attn.weight", "blk.{}.attn_output.weight"},
};
constexpr TensorRule kPlm[] = {
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa.weight", "blk.{}.attn_kv_a_mqa.weight"},
    {"model.layers.{}.self_attn.kv_a_layernorm.weight", "blk.{}.attn_kv_a_norm.weight"},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_kv_b.weight"},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kBitnet[] = {
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", ternary},
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", ternary},
    {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight", ternary},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight", ternary},
    {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight", ternary},
    {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight", ternary},
    {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight", ternary},
    {"model.layers.{}.self_attn.inner_attn_ln.weight", "blk.{}.attn_sub_norm.weight"},
    {"model.layers.{}.mlp.ffn_layernorm.weight", "blk.{}.ffn_sub_norm.weight"},
    {"model.layers.{}.self_attn.attn_sub_norm.weight", "blk.{}.attn_sub_norm.weight"},
    {"model.layers.{}.mlp.ffn_sub_norm.weight", "blk.{}.ffn_sub_norm.weight"},
};

// --- hyperparameters
constexpr ConfigRule kLayerNorms[] = {
    {"num_key_value_heads", "attention.head_count_kv", integer, false},
    {"rms_norm_eps", "attention.layer_norm_epsilon", number},  // Orion's name for it
};
constexpr ConfigRule kNormEps[] = {
    {"num_key_value_heads", "attention.head_count_kv", integer, false},
    {"norm_eps", "attention.layer_norm_epsilon", number},
};
constexpr ConfigRule kMaincoderSizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"intermediate_size_mlp", "feed_forward_length"},
};
constexpr ConfigRule kDeciSizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
    {"intermediate_size", "feed_forward_length", integer, false},
};
constexpr ConfigRule kLatentRank[] = {{"kv_lora_rank", "attention.kv_lora_rank"}};

// --- what rows of the table cannot say
// The vocabulary alone tells the two generations apart: 64000 tokens, 125696 in the second.
bool is_baichuan_2(const JsonView& config) { return size_of(config, "vocab_size") >= 100000; }
bool is_baichuan_1(const JsonView& config) { return !is_baichuan_2(config); }

void more_baichuan(const JsonView& config, std::string_view, GgufWriter&) {
  constexpr int64_t kLayersOf7B = 32, kLayersOf13B = 40;
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  if (layers != kLayersOf7B && layers != kLayersOf13B)
    refuse(
        fmt::format("num_hidden_layers is {}; Prism's Baichuan rotates with {} layers and has "
                    "position biases with {}",
                    layers, kLayersOf7B, kLayersOf13B));
}

// DeciLM gives the width of a layer as a multiple of that of the model.
int64_t deci_width(double multiple, int64_t width) {
  const auto wide = static_cast<int64_t>(2 * multiple * static_cast<double>(width) / 3);
  return (wide + 255) / 256 * 256;
}

void refuse_block(size_t layer, const JsonView& part, const char* needed) {
  refuse(fmt::format("block_configs[{}] has {}; Prism's deci has {}", layer,
                     printable(part.json().dump()), needed));
}

// The heads of q, those of k and v, and the width of each layer; 0 for what it lacks. A layer with
// heads of q alone has a matrix in place of attention.
void set_deci_blocks(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t all_heads = config["num_attention_heads"].integer(1, 1 << 16);
  const std::vector<JsonView> blocks = config["block_configs"].items();
  if (blocks.size() != static_cast<size_t>(config["num_hidden_layers"].integer(1, 4096)))
    refuse(fmt::format("block_configs has {} blocks for {} layers", blocks.size(),
                       config["num_hidden_layers"].integer()));
  std::vector<int32_t> heads, kv_heads, widths;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const JsonView attention = blocks[i]["attention"], wide = blocks[i]["ffn"];
    for (const char* key : {"window_length", "num_sink_tokens", "sparsify", "mamba", "llama4"})
      if (const JsonView value = attention[key]) refuse_block(i, attention, "attention to all");
    if (wide["replace_with_linear"].boolean_or(false) || wide["sparsify"] || wide["moe"])
      refuse_block(i, wide, "gated feed-forward blocks");
    const bool is_none = attention["no_op"].boolean_or(false),
               is_linear = !is_none && attention["replace_with_linear"].boolean_or(false);
    const JsonView group = attention["n_heads_in_group"];
    const bool attends = !is_none && !is_linear && group;
    heads.push_back(static_cast<int32_t>(attends || is_linear ? all_heads : 0));
    kv_heads.push_back(static_cast<int32_t>(attends ? all_heads / group.integer(1, all_heads) : 0));
    const bool is_wide = !wide["no_op"].boolean_or(false) && wide["ffn_mult"];
    if (!is_wide && heads.back() > 0)
      refuse_block(i, blocks[i], "no attention in layers without a feed-forward block");
    widths.push_back(static_cast<int32_t>(
        is_wide ? deci_width(wide["ffn_mult"].number(1e-3, 1e3), size_of(config, "hidden_size"))
                : 0));
  }
  to.set(fmt::format("{}attention.head_count", prefix), heads);
  to.set(fmt::format("{}attention.head_count_kv", prefix), kv_heads);
  to.set(fmt::format("{}feed_forward_length", prefix), widths);
}

void more_deci(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  if (config["block_configs"]) return set_deci_blocks(config, prefix, to);
  std::vector<int32_t> kv_heads;
  for (const JsonView& each : config["num_key_value_heads_per_layer"].items())
    kv_heads.push_back(static_cast<int32_t>(each.integer(1, 1 << 16)));
  if (!kv_heads.empty()) to.set(fmt::format("{}attention.head_count_kv", prefix), kv_heads);
}

void more_nanbeige(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const auto trained = static_cast<int64_t>(config["loop_loss_weights"].items().size());
  const int64_t loops = config["num_loops"].integer_or(1, 1, 64);
  if (trained > 0 && trained + 1 != loops)
    refuse(fmt::format("num_loops is {}, but loop_loss_weights has weights for {}", loops,
                       trained + 1));
  set_size(prefix, "num_loops", loops, to);
  to.set(fmt::format("{}skip_loop_final_norm", prefix),
         config["skip_loop_final_norm"].boolean_or(false));
}

void more_plm(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  set_size(prefix, "attention.key_length",
           size_of(config, "qk_nope_head_dim") + size_of(config, "qk_rope_head_dim"), to);
  set_size(prefix, "attention.value_length", size_of(config, "v_head_dim"), to);
}

// Files without the key have a silu.
void more_bitnet(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  if (config["hidden_act"].string_or("silu") == "relu2")
    to.set(fmt::format("{}hidden_activation", prefix), "relu2");
}

}  // namespace

std::vector<HfArchitecture> hf_llama_variants() {
  using Rules = std::vector<std::span<const TensorRule>>;
  const Rules adjacent = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kFeedForward};
  const HfArchitecture baichuan{
      .name = "BaichuanForCausalLM",
      .gguf = "baichuan",
      .tensors = {kEnds, kNorms, kBaichuanAttention, kValueOutput, kFeedForward},
      .config = {kSizes, kDecoder},
      .expected = {kSilu},
      .more = more_baichuan,
      .fits = is_baichuan_1};
  HfArchitecture baichuan_2 = baichuan;
  baichuan_2.tensors.front() = kUnitHead;
  baichuan_2.fits = is_baichuan_2;
  const HfArchitecture bitnet{.name = "BitnetForCausalLM",
                              .gguf = "bitnet",
                              .tensors = {kEnds, kNorms, kBitnet},
                              .config = {kSizes, kDecoder},
                              .expected = {{"hidden_act", {R"("silu")", R"("relu2")"}}},
                              .more = more_bitnet,
                              .has_ternary = true};
  return {
      baichuan,
      baichuan_2,
      bitnet,
      {"XverseForCausalLM", "xverse", adjacent, {kSizes, kDecoder}, {kSilu}},
      {"InternLM3ForCausalLM", "llama", adjacent, {kSizes, kDecoder}, {kSilu}},
      {"IQuestCoderForCausalLM",
       "llama",
       adjacent,
       {kSizes, kDecoder},
       {kSilu, {"clip_qkv", {}}, {"use_sliding_window", {"false"}}}},
      {"KORMoForCausalLM",
       "qwen2",
       {kEnds, kKormoNorms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder},
       {kSilu}},
      {"OrionForCausalLM",
       "orion",
       {kEnds, kNorms, kNormBiases, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kLayerNorms},
       {kSilu}},
      {"PanguEmbeddedForCausalLM",
       "pangu-embedded",
       {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder},
       {kSilu}},
      // It rotates adjacent elements in its folder, too.
      {.name = "MaincoderForCausalLM",
       .gguf = "maincoder",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kMaincoderFeedForward},
       .config = {kMaincoderSizes, kDecoder},
       .expected = {kSilu, {"use_qk_norm", {"true"}}},
       .is_tied = true},
      {.name = "DeciLMForCausalLM",
       .gguf = "deci",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kLinearAttention, kFeedForward},
       .config = {kDeciSizes, kDecoder},
       .expected = {kSilu},
       .more = more_deci},
      {.name = "NanbeigeForCausalLM",
       .gguf = "nanbeige",
       .tensors = adjacent,
       .config = {kSizes, kDecoder},
       .expected = {kSilu,
                    {"enable_double_loop_split", {"false"}},
                    {"loop_share_kv", {"false"}},
                    {"enable_depth_attention", {"false"}}},
       .more = more_nanbeige},
      {.name = "PLMForCausalLM",
       .gguf = "plm",
       .tensors = {kEnds, kNorms, kPlm},
       .config = {kSizes, kDecoder, kLatentRank},
       .expected = {{"hidden_act", {R"("relu2")"}}, {"q_lora_rank", {}}},
       .more = more_plm},
      {.name = "StableLMEpochForCausalLM",
       .gguf = "stablelm",
       .tensors = {kEnds, kNorms, kNormBiases, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kNormEps},
       .expected = {kSilu, {"qk_layernorm", {"false"}}},
       .more = check_rotated_part},
  };
}

}  // namespace prism::llm
