// The table of Hugging Face architectures.
#include "llm/convert/hf_architectures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/suggest.h"
#include "llm/convert/hf_rules.h"
#include "llm/convert/quantisation_settings.h"
#include "prism/error.h"

namespace prism::llm {

void refuse(const std::string& what) {
  throw Error(ErrorCode::kNotSupported, fmt::format("config.json: {}", what));
}

int64_t head_length(const JsonView& config) {
  const int64_t heads = config["num_attention_heads"].integer(1, 1 << 16);
  return config["head_dim"].integer_or(config["hidden_size"].integer(1, 1 << 20) / heads, 1,
                                       1 << 14);
}

int64_t rotary_length(const JsonView& config) {
  const int64_t own = config["qk_rope_head_dim"].integer_or(0, 0, 1 << 14);
  return own > 0 ? own : head_length(config);
}

void check_windows(const JsonView& config, int64_t period) {
  check_layers(config, "layer_types", [&](int64_t layer, const JsonView& type) {
    return type.string() == ((layer + 1) % period == 0 ? "full_attention" : "sliding_attention");
  });
}

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kGemmaNorms[] = {
    {"model.norm.weight", "output_norm.weight", add_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", add_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight", add_one},
};
constexpr TensorRule kGemma2Norms[] = {
    {"model.norm.weight", "output_norm.weight", add_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", add_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight",
     add_one},
    {"model.layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight", add_one},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight", add_one},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", add_one},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", add_one},
};
constexpr TensorRule kFusedAttention[] = {
    {"model.layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
};
// --- hyperparameters
constexpr ConfigRule kSoftCaps[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping", number, false},
    {"final_logit_softcapping", "final_logit_softcapping", number, false},
    {"sliding_window", "attention.sliding_window", integer},
};

// --- checks that need more than one value
// Prism computes the scale of attention scores from the sizes.
void check_gemma_scale(const JsonView& config, int64_t layers_of_27b) {
  const int64_t layers = config["num_hidden_layers"].integer(1, 4096);
  const int64_t length = layers == layers_of_27b ? config["hidden_size"].integer(1, 1 << 20) /
                                                       config["num_attention_heads"].integer(1)
                                                 : head_length(config);
  const double scalar = config["query_pre_attn_scalar"].number_or(static_cast<double>(length));
  if (scalar != static_cast<double>(length))
    refuse(fmt::format("query_pre_attn_scalar is {}; Prism's Gemma has {} for these sizes", scalar,
                       length));
}

void more_gemma2(const JsonView& config, std::string_view, GgufWriter&) {
  check_gemma_scale(config, 46);
  check_windows(config, 2);
}

void more_gemma3(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  check_gemma_scale(config, 62);
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"})
    if (const int64_t period = config[key].integer_or(6); period != 6)
      refuse(fmt::format("{} is {}; Prism's Gemma 3 has 6", key, period));
  check_windows(config, 6);
  const JsonView local = config["rope_parameters"]["sliding_attention"];
  const double base =
      local ? local["rope_theta"].number_or(1e4) : config["rope_local_base_freq"].number_or(1e4);
  to.set(fmt::format("{}rope.freq_base_swa", prefix), static_cast<float>(base));
}

void more_gemma_embedding(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_gemma3(config, prefix, to);
  to.set(fmt::format("{}attention.causal", prefix), false);
}

void more_smollm3(const JsonView& config, std::string_view, GgufWriter&) {
  if (const int64_t period = config["no_rope_layer_interval"].integer_or(4); period != 4)
    refuse(fmt::format("no_rope_layer_interval is {}; Prism's SmolLM3 has 4", period));
  check_layers(config, "no_rope_layers", [](int64_t layer, const JsonView& rotates) {
    return rotates.integer() == ((layer + 1) % 4 == 0 ? 0 : 1);
  });
}

std::vector<HfArchitecture> first_decoders() {
  using Rules = std::vector<std::span<const TensorRule>>;
  using Keys = std::vector<std::span<const ConfigRule>>;
  const Rules adjacent = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kFeedForward};
  const Rules halves = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward};
  const Keys decoder = {kSizes, kDecoder};
  const Expectation gelu{"hidden_activation", {R"("gelu_pytorch_tanh")"}};
  // Early files of Gemma name the exact function and mean the approximation.
  const Expectation either_gelu{"hidden_act", {R"("gelu_pytorch_tanh")", R"("gelu")"}};
  return {
      {"LlamaForCausalLM", "llama", adjacent, decoder, {kSilu}},
      {"MistralForCausalLM", "llama", adjacent, decoder, {kSilu}},
      {"MixtralForCausalLM",
       "llama",
       {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kMixtralExperts},
       {kSizes, kDecoder, kMixtral},
       {kSilu}},
      {"Qwen2ForCausalLM", "qwen2", halves, decoder, {kSilu}},
      {"Qwen3ForCausalLM", "qwen3", halves, decoder, {kSilu}},
      {"Qwen3MoeForCausalLM",
       "qwen3moe",
       {kEnds, kNorms, kQueryKey, kValueOutput, kExperts},
       {kSizes, kDecoder, kQwenMoe},
       {kSilu,
        {"mlp_only_layers", {"[]"}},
        {"decoder_sparse_step", {"1"}},
        {"norm_topk_prob", {"true"}}}},
      {"GemmaForCausalLM",
       "gemma",
       {kEnds, kGemmaNorms, kQueryKey, kValueOutput, kFeedForward},
       decoder,
       {gelu, either_gelu}},
      {"Gemma2ForCausalLM",
       "gemma2",
       {kEnds, kGemma2Norms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder, kSoftCaps},
       {gelu},
       true,
       more_gemma2},
      {"Gemma3ForCausalLM",
       "gemma3",
       {kEnds, kGemma2Norms, kQueryKey, kValueOutput, kFeedForward},
       {kSizes, kDecoder, kWindow},
       {gelu,
        {"use_bidirectional_attention", {"false"}},
        {"attn_logit_softcapping", {}},
        {"final_logit_softcapping", {}}},
       true,
       more_gemma3},
      {.name = "Gemma3TextModel",
       .gguf = "gemma-embedding",
       .tensors = {kEnds, kGemma2Norms, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder, kWindow},
       .expected = {gelu,
                    {"use_bidirectional_attention", {"true"}},
                    {"attn_logit_softcapping", {}},
                    {"final_logit_softcapping", {}}},
       .has_windows = true,
       .more = more_gemma_embedding,
       .is_tied = true,
       .added_prefix = "model."},
      {"Phi3ForCausalLM",
       "phi3",
       {kEnds, kNorms, kFusedAttention, kFusedFeedForward},
       decoder,
       {kSilu}},
      {"SmolLM3ForCausalLM", "smollm3", adjacent, decoder, {kSilu}, false, more_smollm3},
      {"GraniteForCausalLM", "granite", adjacent, {kSizes, kDecoder, kGraniteScales}, {kSilu}},
      {"Olmo2ForCausalLM",
       "olmo2",
       {kEnds, kPostNorms, kQueryKey, kValueOutput, kFeedForward},
       decoder,
       {kSilu}},
  };
}

const std::vector<HfArchitecture>& table() {
  static const std::vector<HfArchitecture> rows = [] {
    std::vector<HfArchitecture> all = hf_bert_relatives();
    for (const auto& more :
         {hf_encoders(),           hf_embedding_decoders(), first_decoders(),
          hf_other_decoders(),     hf_gpt_decoders(),       hf_expert_decoders(),
          hf_recurrent_decoders(), hf_delta_decoders(),     hf_gemma_decoders(),
          hf_routed_decoders(),    hf_seeing_decoders(),    hf_diffusion_decoders(),
          hf_rwkv_decoders(),      hf_mixture_decoders(),   hf_mixture_variants(),
          hf_latent_mixtures(),    hf_llama_variants(),     hf_plamo_decoders(),
          hf_gpt_variants(),       hf_named_decoders(),     hf_kimi_decoders(),
          hf_grok_decoders(),      hf_mimo_decoders()})
      all.insert(all.end(), more.begin(), more.end());
    for (const auto& more : {hf_bare_decoders(all), hf_ranking_decoders(all)})
      all.insert(all.end(), more.begin(), more.end());
    const size_t own = all.size();
    for (const HfAlias& alias : hf_aliases())
      for (size_t i = 0; i < own; ++i)
        if (all[i].name == alias.known_as) all.emplace_back(all[i]).name = alias.name;
    return all;
  }();
  return rows;
}

void write_rule(const ConfigRule& rule, const JsonView& config, std::string_view prefix,
                GgufWriter& to) {
  const JsonView value = config[rule.from];
  if (!value && !rule.is_required) return;
  const std::string key = fmt::format("{}{}", prefix, rule.to);
  if (rule.kind == integer)
    to.set(key, static_cast<uint32_t>(value.integer(0, 1 << 30)));
  else
    to.set(key, static_cast<float>(value.number()));
}

// The window of attention; 0: none. A model whose layers know no windows is right up to its window.
int64_t window_of(const JsonView& config) {
  if (!config["sliding_window"] || !config["use_sliding_window"].boolean_or(true)) return 0;
  bool is_used = !config["layer_types"];
  for (const JsonView& each : config["layer_types"].items())
    is_used = is_used || each.string() == "sliding_attention";
  return is_used ? config["sliding_window"].integer(1, 1 << 30) : 0;
}

}  // namespace

namespace {

// A known name like this one, or nothing. Endings that most names share do not count.
std::string nearest_architecture(const std::string& name) {
  const auto beginning = [](std::string_view whole) { return whole.substr(0, whole.find("For")); };
  const std::vector<std::string_view> names = hf_architecture_names();
  std::vector<std::string> beginnings;
  for (const std::string_view each : names) beginnings.emplace_back(beginning(each));
  const std::string near = nearest_name(beginning(name), beginnings);
  const auto found = std::ranges::find(beginnings, near);
  return near.empty() ? "" : std::string(names[static_cast<size_t>(found - beginnings.begin())]);
}

}  // namespace

const HfArchitecture& hf_architecture(const JsonView& config) {
  std::string found = "nothing";
  for (const JsonView& each : config["architectures"].items()) {
    found = each.string();
    for (const HfArchitecture& row : table())
      if (row.name == found && (!row.fits || row.fits(config))) return row;
  }
  const size_t known = hf_architecture_names().size();
  const std::string near = nearest_architecture(found);
  throw Error(
      ErrorCode::kNotSupported,
      fmt::format(
          "config.json: architectures names {}, which cannot be converted{}; docs/models.md "
          "lists the {} names that can, and says how to ask for another",
          printable(found), near.empty() ? "" : fmt::format(" (but {} can)", near), known));
}

std::vector<std::string_view> hf_architecture_names() {
  std::vector<std::string_view> names;
  for (const HfArchitecture& row : table())
    if (std::ranges::find(names, row.name) == names.end()) names.push_back(row.name);
  return names;
}

int64_t skipped_positions(const HfArchitecture& architecture, const JsonView& config) {
  return architecture.counts_after_padding ? config["pad_token_id"].integer(0, 1 << 20) + 1 : 0;
}

int64_t context_length(const HfArchitecture& architecture, const JsonView& config) {
  const int64_t skipped = skipped_positions(architecture, config);
  const bool is_kimi = !config["max_position_embeddings"] && config["model_max_length"];
  const JsonView positions = config[is_kimi ? "model_max_length" : "max_position_embeddings"];
  const int64_t known = !positions && architecture.default_context > 0
                            ? architecture.default_context
                            : positions.integer(skipped + 1, 1 << 30) - skipped;
  const int64_t most = architecture.right_up_to ? architecture.right_up_to(config) : 0;
  return most > 0 ? std::min(known, most) : known;
}

void write_hyperparameters(const HfArchitecture& architecture, const JsonView& config,
                           GgufWriter& to) {
  const JsonView quantised = config["quantization_config"];
  const bool is_known =
      has_scaled_weights(quantised) || (architecture.has_mxfp4 && has_mxfp4_weights(quantised)) ||
      (architecture.has_ternary && quantised["quant_method"].string_or("") == "bitnet" &&
       quantised["quantization_mode"].string_or("") == "online");
  if (quantised && !is_known)
    refuse(
        fmt::format("quantization_config is {}; weights may be FP8 or 8-bit integers with "
                    "scales, or convert the original model",
                    printable(quantised.json().dump())));
  for (const Expectation& each : architecture.expected) {
    const JsonView value = config[each.key];
    if (value && std::ranges::find(each.values, value.json().dump()) == each.values.end())
      refuse(fmt::format(
          "{} is {}; Prism's {} {}", each.key, printable(value.json().dump()), architecture.gguf,
          each.values.empty() ? "has none"
                              : fmt::format("needs {}", fmt::join(each.values, " or "))));
  }
  const std::string prefix = fmt::format("{}.", architecture.gguf);
  int64_t context = context_length(architecture, config);
  const int64_t window = architecture.has_windows ? 0 : window_of(config);
  if (window > 0) context = std::min(context, window);
  to.set(prefix + "context_length", static_cast<uint32_t>(context));
  for (const auto& rules : architecture.config)
    for (const ConfigRule& rule : rules) write_rule(rule, config, prefix, to);
  if (architecture.has_heads) {
    const int64_t length = head_length(config);
    to.set(prefix + "attention.key_length", static_cast<uint32_t>(length));
    to.set(prefix + "attention.value_length", static_cast<uint32_t>(length));
    if (architecture.is_rotated)
      write_rope(config, prefix, rotary_length(config), architecture.yarn, to);
  }
  // Embedders made of decoders whose tokens see those behind them.
  if (!config["is_causal"].boolean_or(true)) to.set(prefix + "attention.causal", false);
  if (architecture.more) architecture.more(config, prefix, to);
}

}  // namespace prism::llm
