// The Hugging Face models for embeddings whose layers are like those of decoders.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kNeoBert[] = {
    {"encoder.weight", "token_embd.weight"},
    {"transformer_encoder.{}.attention_norm.weight", "blk.{}.attn_norm.weight"},
    {"transformer_encoder.{}.qkv.weight", "blk.{}.attn_qkv.weight", split_heads},
    {"transformer_encoder.{}.wo.weight", "blk.{}.attn_output.weight"},
    {"transformer_encoder.{}.ffn_norm.weight", "blk.{}.ffn_norm.weight"},
    {"transformer_encoder.{}.ffn.w12.weight", "blk.{}.ffn_up.weight"},
    {"transformer_encoder.{}.ffn.w3.weight", "blk.{}.ffn_down.weight"},
    {"layer_norm.weight", "enc.output_norm.weight"},
    {"freqs_cis", ""},  // computed
};
constexpr TensorRule kNeoBertMask[] = {{"decoder.weight", ""}, {"decoder.bias", ""}};
constexpr TensorRule kNeoBertHead[] = {
    {"dense.weight", "cls.weight"},
    {"dense.bias", "cls.bias"},
    {"classifier.weight", "cls.output.weight"},
    {"classifier.bias", "cls.output.bias"},
};
constexpr TensorRule kPlainNorms[] = {
    {"model.norm.weight", "output_norm.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
};

// --- hyperparameters
constexpr ConfigRule kNeoBertSizes[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"num_attention_heads", "attention.head_count"},
};

void more_neo_bert(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_encoder(config, prefix, to);
  to.set(fmt::format("{}attention.layer_norm_rms_epsilon", prefix),
         static_cast<float>(config["norm_eps"].number_or(1e-6, 0, 1)));
  // Two thirds of what config.json says, rounded up to a multiple of 8.
  const int64_t inner = size_of(config, "intermediate_size") * 2 / 3;
  set_size(prefix, "feed_forward_length", (inner + 7) / 8 * 8, to);
  if (const JsonView most = config["max_length"])
    set_size(prefix, "context_length", most.integer(1, 1 << 30), to);
  constexpr uint32_t kFirst = 2, kRank = 4;  // of llama.cpp's kinds of pooling
  const bool ranks =
      config["architectures"].json().dump().find("Classification") != std::string::npos;
  to.set(fmt::format("{}pooling_type", prefix), ranks ? kRank : kFirst);
}

// With one label the score is the sigmoid of a number: the softmax of that number and zero.
constexpr TensorRule kScore[] = {{"score.weight", "cls.output.weight", paired}};

}  // namespace

std::vector<HfArchitecture> hf_embedding_decoders() {
  const auto neo_bert = [](std::string_view name, std::span<const TensorRule> head) {
    return HfArchitecture{
        .name = name,
        .gguf = "neo-bert",
        .tensors = {kNeoBert, head},
        .config = {kNeoBertSizes},
        .expected = {{"hidden_act", {R"("SwiGLU")", R"("swiglu")"}},
                     {"rms_norm", {"true"}},
                     {"rope", {"true"}},
                     {"ngpt", {"false"}}},
        .more = more_neo_bert,
        .prefix = "model.",
        .default_context = 4096,
    };
  };
  return {
      neo_bert("NeoBERT", kNeoBertMask),
      neo_bert("NeoBERTLMHead", kNeoBertMask),
      neo_bert("NeoBERTForSequenceClassification", kNeoBertHead),
      {.name = "LlamaBidirectionalModel",
       .gguf = "llama-embed",
       .tensors = {kEnds, kPlainNorms, kAdjacentQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {kSilu, {"pooling", {R"("avg")", R"("mean")"}}},
       .more = more_encoder,
       .is_tied = true,
       .added_prefix = "model."},
      {.name = "JinaEmbeddingsV5Model",
       .gguf = "eurobert",
       .tensors = {kEnds, kPlainNorms, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {kSilu, {"is_causal", {"false"}}},
       .more = more_encoder,
       .is_tied = true,
       .added_prefix = "model."},
  };
}

std::vector<HfArchitecture> hf_ranking_decoders(std::span<const HfArchitecture> decoders) {
  std::vector<HfArchitecture> rows;
  for (const HfArchitecture& each : decoders)
    if (each.name == "Qwen3ForCausalLM") {
      HfArchitecture& row = rows.emplace_back(each);
      row.name = "Qwen3ForSequenceClassification";
      row.tensors.emplace_back(kScore);
      row.ranks = true;
    }
  return rows;
}

// A decoder without an output matrix has the tensors of the whole one, without "model.".
std::vector<HfArchitecture> hf_bare_decoders(std::span<const HfArchitecture> decoders) {
  constexpr std::pair<std::string_view, std::string_view> kBare[] = {
      {"LlamaModel", "LlamaForCausalLM"}, {"MistralModel", "MistralForCausalLM"},
      {"Qwen2Model", "Qwen2ForCausalLM"}, {"Qwen3Model", "Qwen3ForCausalLM"},
      {"Lfm2Model", "Lfm2ForCausalLM"},
  };
  std::vector<HfArchitecture> rows;
  for (const auto& [name, whole] : kBare)
    for (const HfArchitecture& each : decoders)
      if (each.name == whole) {
        HfArchitecture& row = rows.emplace_back(each);
        row.name = name;
        row.added_prefix = "model.";
        row.is_bare = true;
      }
  return rows;
}

}  // namespace prism::llm
