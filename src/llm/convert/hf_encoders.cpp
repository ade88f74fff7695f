// The Hugging Face encoders, and T5 with its decoder.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kBert[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight"},
    {"embeddings.position_embeddings.weight", "position_embd.weight", cut},
    {"embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"embeddings.LayerNorm.weight", "token_embd_norm.weight"},
    {"embeddings.LayerNorm.bias", "token_embd_norm.bias"},
    {"embeddings.position_ids", ""},  // 0, 1, 2 ...
    {"encoder.layer.{}.attention.self.query.weight", "blk.{}.attn_q.weight"},
    {"encoder.layer.{}.attention.self.query.bias", "blk.{}.attn_q.bias"},
    {"encoder.layer.{}.attention.self.key.weight", "blk.{}.attn_k.weight"},
    {"encoder.layer.{}.attention.self.key.bias", "blk.{}.attn_k.bias"},
    {"encoder.layer.{}.attention.self.value.weight", "blk.{}.attn_v.weight"},
    {"encoder.layer.{}.attention.self.value.bias", "blk.{}.attn_v.bias"},
    {"encoder.layer.{}.attention.output.dense.weight", "blk.{}.attn_output.weight"},
    {"encoder.layer.{}.attention.output.dense.bias", "blk.{}.attn_output.bias"},
    {"encoder.layer.{}.attention.output.LayerNorm.weight", "blk.{}.attn_output_norm.weight"},
    {"encoder.layer.{}.attention.output.LayerNorm.bias", "blk.{}.attn_output_norm.bias"},
    {"encoder.layer.{}.intermediate.dense.weight", "blk.{}.ffn_up.weight"},
    {"encoder.layer.{}.intermediate.dense.bias", "blk.{}.ffn_up.bias"},
    {"encoder.layer.{}.output.dense.weight", "blk.{}.ffn_down.weight"},
    {"encoder.layer.{}.output.dense.bias", "blk.{}.ffn_down.bias"},
    {"encoder.layer.{}.output.LayerNorm.weight", "blk.{}.layer_output_norm.weight"},
    {"encoder.layer.{}.output.LayerNorm.bias", "blk.{}.layer_output_norm.bias"},
    // The classifier over the first token; embeddings are pooled from the last layer.
    {"pooler.dense.weight", ""},
    {"pooler.dense.bias", ""},
};

// Norms of BERT's first files.
constexpr TensorRule kOldNorms[] = {
    {"embeddings.LayerNorm.gamma", "token_embd_norm.weight"},
    {"embeddings.LayerNorm.beta", "token_embd_norm.bias"},
    {"encoder.layer.{}.attention.output.LayerNorm.gamma", "blk.{}.attn_output_norm.weight"},
    {"encoder.layer.{}.attention.output.LayerNorm.beta", "blk.{}.attn_output_norm.bias"},
    {"encoder.layer.{}.output.LayerNorm.gamma", "blk.{}.layer_output_norm.weight"},
    {"encoder.layer.{}.output.LayerNorm.beta", "blk.{}.layer_output_norm.bias"},
};

// The heads of classifiers.
constexpr TensorRule kBertHead[] = {
    {"pooler.dense.weight", "cls.weight"},
    {"pooler.dense.bias", "cls.bias"},
    {"classifier.weight", "cls.output.weight"},
    {"classifier.bias", "cls.output.bias"},
};
constexpr TensorRule kRobertaHead[] = {
    {"classifier.dense.weight", "cls.weight"},
    {"classifier.dense.bias", "cls.bias"},
    {"classifier.out_proj.weight", "cls.output.weight"},
    {"classifier.out_proj.bias", "cls.output.bias"},
};
// The heads that guess masked tokens, which embeddings do not need.
constexpr TensorRule kRobertaMask[] = {
    {"lm_head.bias", ""},
    {"lm_head.dense.weight", ""},
    {"lm_head.dense.bias", ""},
    {"lm_head.layer_norm.weight", ""},
    {"lm_head.layer_norm.bias", ""},
    {"lm_head.decoder.weight", ""},
    {"lm_head.decoder.bias", ""},
};
constexpr TensorRule kModernBertMask[] = {
    {"head.dense.weight", ""},
    {"head.norm.weight", ""},
    {"decoder.weight", ""},
    {"decoder.bias", ""},
};
constexpr TensorRule kModernBert[] = {
    {"embeddings.tok_embeddings.weight", "token_embd.weight"},
    {"embeddings.norm.weight", "token_embd_norm.weight"},
    {"layers.{}.attn_norm.weight", "blk.{}.attn_norm.weight"},
    {"layers.{}.attn.Wqkv.weight", "blk.{}.attn_qkv.weight"},
    {"layers.{}.attn.Wo.weight", "blk.{}.attn_output.weight"},
    {"layers.{}.mlp_norm.weight", "blk.{}.ffn_norm.weight"},
    {"layers.{}.mlp.Wi.weight", "blk.{}.ffn_up.weight"},
    {"layers.{}.mlp.Wo.weight", "blk.{}.ffn_down.weight"},
    {"final_norm.weight", "output_norm.weight"},
};
constexpr TensorRule kModernBertHead[] = {
    {"head.dense.weight", "cls.weight"},
    {"head.norm.weight", "cls.norm.weight"},
    {"classifier.weight", "cls.output.weight"},
    {"classifier.bias", "cls.output.bias"},
};
constexpr TensorRule kNomicBert[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight"},
    {"embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"emb_ln.weight", "token_embd_norm.weight"},
    {"emb_ln.bias", "token_embd_norm.bias"},
    {"encoder.layers.{}.attn.Wqkv.weight", "blk.{}.attn_qkv.weight"},
    {"encoder.layers.{}.attn.out_proj.weight", "blk.{}.attn_output.weight"},
    {"encoder.layers.{}.norm1.weight", "blk.{}.attn_output_norm.weight"},
    {"encoder.layers.{}.norm1.bias", "blk.{}.attn_output_norm.bias"},
    {"encoder.layers.{}.mlp.fc11.weight", "blk.{}.ffn_up.weight"},
    {"encoder.layers.{}.mlp.fc12.weight", "blk.{}.ffn_gate.weight"},
    {"encoder.layers.{}.mlp.fc2.weight", "blk.{}.ffn_down.weight"},
    {"encoder.layers.{}.norm2.weight", "blk.{}.layer_output_norm.weight"},
    {"encoder.layers.{}.norm2.bias", "blk.{}.layer_output_norm.bias"},
};

constexpr TensorRule kT5Encoder[] = {
    {"shared.weight", "token_embd.weight"},
    {"encoder.embed_tokens.weight", ""},  // the same
    {"encoder.final_layer_norm.weight", "enc.output_norm.weight"},
    {"encoder.block.{}.layer.0.SelfAttention.q.weight", "enc.blk.{}.attn_q.weight"},
    {"encoder.block.{}.layer.0.SelfAttention.k.weight", "enc.blk.{}.attn_k.weight"},
    {"encoder.block.{}.layer.0.SelfAttention.v.weight", "enc.blk.{}.attn_v.weight"},
    {"encoder.block.{}.layer.0.SelfAttention.o.weight", "enc.blk.{}.attn_o.weight"},
    {"encoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight",
     "enc.blk.{}.attn_rel_b.weight"},
    {"encoder.block.{}.layer.0.layer_norm.weight", "enc.blk.{}.attn_norm.weight"},
    {"encoder.block.{}.layer.1.DenseReluDense.wi.weight", "enc.blk.{}.ffn_up.weight"},
    {"encoder.block.{}.layer.1.DenseReluDense.wi_0.weight", "enc.blk.{}.ffn_gate.weight"},
    {"encoder.block.{}.layer.1.DenseReluDense.wi_1.weight", "enc.blk.{}.ffn_up.weight"},
    {"encoder.block.{}.layer.1.DenseReluDense.wo.weight", "enc.blk.{}.ffn_down.weight"},
    {"encoder.block.{}.layer.1.layer_norm.weight", "enc.blk.{}.ffn_norm.weight"},
};

constexpr TensorRule kT5Decoder[] = {
    {"lm_head.weight", "output.weight"},
    {"decoder.embed_tokens.weight", ""},
    {"decoder.final_layer_norm.weight", "dec.output_norm.weight"},
    {"decoder.block.{}.layer.0.SelfAttention.q.weight", "dec.blk.{}.attn_q.weight"},
    {"decoder.block.{}.layer.0.SelfAttention.k.weight", "dec.blk.{}.attn_k.weight"},
    {"decoder.block.{}.layer.0.SelfAttention.v.weight", "dec.blk.{}.attn_v.weight"},
    {"decoder.block.{}.layer.0.SelfAttention.o.weight", "dec.blk.{}.attn_o.weight"},
    {"decoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight",
     "dec.blk.{}.attn_rel_b.weight"},
    {"decoder.block.{}.layer.0.layer_norm.weight", "dec.blk.{}.attn_norm.weight"},
    {"decoder.block.{}.layer.1.EncDecAttention.q.weight", "dec.blk.{}.cross_attn_q.weight"},
    {"decoder.block.{}.layer.1.EncDecAttention.k.weight", "dec.blk.{}.cross_attn_k.weight"},
    {"decoder.block.{}.layer.1.EncDecAttention.v.weight", "dec.blk.{}.cross_attn_v.weight"},
    {"decoder.block.{}.layer.1.EncDecAttention.o.weight", "dec.blk.{}.cross_attn_o.weight"},
    {"decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias.weight", ""},  // not used
    {"decoder.block.{}.layer.1.layer_norm.weight", "dec.blk.{}.cross_attn_norm.weight"},
    {"decoder.block.{}.layer.2.DenseReluDense.wi.weight", "dec.blk.{}.ffn_up.weight"},
    {"decoder.block.{}.layer.2.DenseReluDense.wi_0.weight", "dec.blk.{}.ffn_gate.weight"},
    {"decoder.block.{}.layer.2.DenseReluDense.wi_1.weight", "dec.blk.{}.ffn_up.weight"},
    {"decoder.block.{}.layer.2.DenseReluDense.wo.weight", "dec.blk.{}.ffn_down.weight"},
    {"decoder.block.{}.layer.2.layer_norm.weight", "dec.blk.{}.ffn_norm.weight"},
};

// --- hyperparameters
constexpr ConfigRule kBertConfig[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", number},
};
constexpr ConfigRule kModernBertConfig[] = {
    {"norm_eps", "attention.layer_norm_epsilon", number},
    {"local_attention", "attention.sliding_window"},
};
constexpr ConfigRule kNomicBertConfig[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", number, false},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", number, false},  // in older files
};
constexpr ConfigRule kT5Config[] = {
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", number},
    {"relative_attention_num_buckets", "attention.relative_buckets_count"},
};
constexpr ConfigRule kT5DecoderConfig[] = {
    {"num_decoder_layers", "decoder_block_count", integer, false},
    {"decoder_start_token_id", "decoder_start_token_id", integer, false},
};

}  // namespace

// Prism knows both from the tensors and the architecture; llama.cpp does not.
void more_bert(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}attention.causal", prefix), false);
  to.set("tokenizer.ggml.token_type_count",
         static_cast<uint32_t>(config["type_vocab_size"].integer_or(2, 1, 1 << 16)));
}

namespace {

void more_ranker(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_bert(config, prefix, to);
  constexpr uint32_t kRank = 4;  // of llama.cpp's kinds of pooling
  to.set(fmt::format("{}pooling_type", prefix), kRank);
}

void more_modern_bert(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}attention.causal", prefix), false);
  if (const int64_t period = config["global_attn_every_n_layers"].integer_or(3); period != 3)
    refuse(fmt::format("global_attn_every_n_layers is {}; Prism's ModernBERT has 3", period));
  check_layers(config, "layer_types", [](int64_t layer, const JsonView& type) {
    return type.string() == (layer % 3 == 0 ? "full_attention" : "sliding_attention");
  });
  const JsonView both = config["rope_parameters"];
  const auto base = [&](const char* kind, const char* old_key, double otherwise) {
    const double old = config[old_key].number_or(otherwise, 1e-3, 1e12);
    return static_cast<float>(both[kind]["rope_theta"].number_or(old, 1e-3, 1e12));
  };
  to.set(fmt::format("{}rope.freq_base", prefix),
         base("full_attention", "global_rope_theta", 160000));
  to.set(fmt::format("{}rope.freq_base_swa", prefix),
         base("sliding_attention", "local_rope_theta", 10000));
}

}  // namespace

void more_encoder(const JsonView&, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}attention.causal", prefix), false);
}

std::vector<HfArchitecture> hf_encoders() {
  const std::vector<Expectation> t5 = {{"feed_forward_proj", {R"("relu")", R"("gated-gelu")"}},
                                       {"relative_attention_max_distance", {"128"}},
                                       {"scalable_attention", {"true"}}};
  const auto t5_model = [&](std::string_view name) {
    return HfArchitecture{name,
                          "t5",
                          {kT5Encoder, kT5Decoder},
                          {kSizes, kT5Config, kT5DecoderConfig},
                          t5,
                          false,
                          nullptr,
                          false,
                          true};
  };
  const auto bert = [](std::string_view name, std::string_view prefix,
                       std::vector<std::span<const TensorRule>> tensors) {
    HfArchitecture row{name,
                       "bert",
                       std::move(tensors),
                       {kSizes, kBertConfig},
                       {{"hidden_act", {R"("gelu")"}},
                        {"position_embedding_type", {R"("absolute")"}},
                        {"is_decoder", {"false"}}}};
    row.more = name.ends_with("SequenceClassification") ? more_ranker : more_bert;
    row.is_rotated = false;
    row.prefix = prefix;
    row.counts_after_padding = prefix == "roberta.";
    return row;
  };
  const auto modern_bert = [](std::string_view name, std::span<const TensorRule> head,
                              std::vector<std::string_view> pooling = {}) {
    HfArchitecture row{name,
                       "modern-bert",
                       {kModernBert, head},
                       {kSizes, kModernBertConfig},
                       {{"hidden_activation", {R"("gelu")"}}},
                       true,
                       more_modern_bert};
    if (!pooling.empty()) {
      row.expected.push_back({"classifier_pooling", std::move(pooling)});
      row.expected.push_back({"classifier_activation", {R"("gelu")"}});
    }
    row.prefix = "model.";
    return row;
  };
  return {
      t5_model("T5ForConditionalGeneration"),
      t5_model("MT5ForConditionalGeneration"),
      t5_model("UMT5ForConditionalGeneration"),
      {"T5EncoderModel", "t5encoder", {kT5Encoder}, {kSizes, kT5Config}, t5, false, nullptr, false},
      bert("BertModel", "bert.", {kBert, kOldNorms}),
      bert("BertForMaskedLM", "bert.", {kBert, kOldNorms, kBertMask}),
      bert("BertForSequenceClassification", "bert.", {kBertHead, kBert, kOldNorms}),
      bert("RobertaModel", "roberta.", {kBert}),
      bert("RobertaForMaskedLM", "roberta.", {kBert, kRobertaMask}),
      bert("RobertaForSequenceClassification", "roberta.", {kRobertaHead, kBert}),
      bert("XLMRobertaModel", "roberta.", {kBert}),
      bert("XLMRobertaForMaskedLM", "roberta.", {kBert, kRobertaMask}),
      bert("XLMRobertaForSequenceClassification", "roberta.", {kRobertaHead, kBert}),
      bert("CamembertModel", "roberta.", {kBert}),
      bert("CamembertForMaskedLM", "roberta.", {kBert, kRobertaMask}),
      bert("CamembertForSequenceClassification", "roberta.", {kRobertaHead, kBert}),
      modern_bert("ModernBertModel", {}),
      modern_bert("ModernBertForMaskedLM", kModernBertMask),
      modern_bert("ModernBertForSequenceClassification", kModernBertHead, {R"("mean")"}),
      {.name = "EuroBertModel",
       .gguf = "eurobert",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kFeedForward},
       .config = {kSizes, kDecoder},
       .expected = {kSilu},
       .more = more_encoder,
       .added_prefix = "model."},
      {"NomicBertModel",
       "nomic-bert",
       {kNomicBert},
       {kSizes, kNomicBertConfig},
       {kSilu,
        {"activation_function", {R"("swiglu")"}},
        {"rotary_emb_fraction", {"1", "1.0"}},
        {"rotary_emb_interleaved", {"false"}},
        {"rotary_emb_scale_base", {}},
        {"rotary_scaling_factor", {}},
        {"prenorm", {"false"}},
        {"causal", {"false"}}},
       false,
       more_bert},
  };
}

}  // namespace prism::llm
