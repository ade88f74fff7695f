// The Hugging Face encoders with norms after each block that are not named like BERT's: DistilBERT,
// Jina's, and Nomic's with experts.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kDistilBert[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight"},
    {"embeddings.position_embeddings.weight", "position_embd.weight", cut},
    {"embeddings.position_ids", ""},
    {"embeddings.LayerNorm.weight", "token_embd_norm.weight"},
    {"embeddings.LayerNorm.bias", "token_embd_norm.bias"},
    {"transformer.layer.{}.attention.q_lin.weight", "blk.{}.attn_q.weight"},
    {"transformer.layer.{}.attention.q_lin.bias", "blk.{}.attn_q.bias"},
    {"transformer.layer.{}.attention.k_lin.weight", "blk.{}.attn_k.weight"},
    {"transformer.layer.{}.attention.k_lin.bias", "blk.{}.attn_k.bias"},
    {"transformer.layer.{}.attention.v_lin.weight", "blk.{}.attn_v.weight"},
    {"transformer.layer.{}.attention.v_lin.bias", "blk.{}.attn_v.bias"},
    {"transformer.layer.{}.attention.out_lin.weight", "blk.{}.attn_output.weight"},
    {"transformer.layer.{}.attention.out_lin.bias", "blk.{}.attn_output.bias"},
    {"transformer.layer.{}.sa_layer_norm.weight", "blk.{}.attn_output_norm.weight"},
    {"transformer.layer.{}.sa_layer_norm.bias", "blk.{}.attn_output_norm.bias"},
    {"transformer.layer.{}.ffn.lin1.weight", "blk.{}.ffn_up.weight"},
    {"transformer.layer.{}.ffn.lin1.bias", "blk.{}.ffn_up.bias"},
    {"transformer.layer.{}.ffn.lin2.weight", "blk.{}.ffn_down.weight"},
    {"transformer.layer.{}.ffn.lin2.bias", "blk.{}.ffn_down.bias"},
    {"transformer.layer.{}.output_layer_norm.weight", "blk.{}.layer_output_norm.weight"},
    {"transformer.layer.{}.output_layer_norm.bias", "blk.{}.layer_output_norm.bias"},
};
// The head that guesses masked tokens.
constexpr TensorRule kDistilBertMask[] = {
    {"vocab_transform.weight", ""}, {"vocab_transform.bias", ""},   {"vocab_layer_norm.weight", ""},
    {"vocab_layer_norm.bias", ""},  {"vocab_projector.weight", ""}, {"vocab_projector.bias", ""},
};

constexpr TensorRule kDistilBertHead[] = {
    {"pre_classifier.weight", "cls.weight"},
    {"pre_classifier.bias", "cls.bias"},
    {"classifier.weight", "cls.output.weight"},
    {"classifier.bias", "cls.output.bias"},
};

// Jina 2: the models for text and, with more norms, those for code.
constexpr TensorRule kJinaBert[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight"},
    {"embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"embeddings.LayerNorm.weight", "token_embd_norm.weight"},
    {"embeddings.LayerNorm.bias", "token_embd_norm.bias"},
    {"encoder.layer.{}.attention.self.query.weight", "blk.{}.attn_q.weight"},
    {"encoder.layer.{}.attention.self.query.bias", "blk.{}.attn_q.bias"},
    {"encoder.layer.{}.attention.self.key.weight", "blk.{}.attn_k.weight"},
    {"encoder.layer.{}.attention.self.key.bias", "blk.{}.attn_k.bias"},
    {"encoder.layer.{}.attention.self.value.weight", "blk.{}.attn_v.weight"},
    {"encoder.layer.{}.attention.self.value.bias", "blk.{}.attn_v.bias"},
    {"encoder.layer.{}.attention.self.layer_norm_q.weight", "blk.{}.attn_q_norm.weight"},
    {"encoder.layer.{}.attention.self.layer_norm_q.bias", "blk.{}.attn_q_norm.bias"},
    {"encoder.layer.{}.attention.self.layer_norm_k.weight", "blk.{}.attn_k_norm.weight"},
    {"encoder.layer.{}.attention.self.layer_norm_k.bias", "blk.{}.attn_k_norm.bias"},
    {"encoder.layer.{}.attention.output.dense.weight", "blk.{}.attn_output.weight"},
    {"encoder.layer.{}.attention.output.dense.bias", "blk.{}.attn_output.bias"},
    {"encoder.layer.{}.attention.output.LayerNorm.weight", "blk.{}.attn_output_norm.weight"},
    {"encoder.layer.{}.attention.output.LayerNorm.bias", "blk.{}.attn_output_norm.bias"},
    // The first half of the rows is the gate.
    {"encoder.layer.{}.mlp.gated_layers.weight", "blk.{}.ffn_up.weight"},
    {"encoder.layer.{}.mlp.wo.weight", "blk.{}.ffn_down.weight"},
    {"encoder.layer.{}.mlp.wo.bias", "blk.{}.ffn_down.bias"},
    {"encoder.layer.{}.mlp.layernorm.weight", "blk.{}.layer_output_norm.weight"},
    {"encoder.layer.{}.mlp.layernorm.bias", "blk.{}.layer_output_norm.bias"},
    {"encoder.layer.{}.layer_norm_1.weight", "blk.{}.attn_norm_2.weight"},
    {"encoder.layer.{}.layer_norm_1.bias", "blk.{}.attn_norm_2.bias"},
    // For code the second half is the gate.
    {"encoder.layer.{}.mlp.up_gated_layer.weight", "blk.{}.ffn_up.weight", first_half},
    {"encoder.layer.{}.mlp.up_gated_layer.weight", "blk.{}.ffn_gate.weight", second_half},
    {"encoder.layer.{}.mlp.down_layer.weight", "blk.{}.ffn_down.weight"},
    {"encoder.layer.{}.mlp.down_layer.bias", "blk.{}.ffn_down.bias"},
    {"encoder.layer.{}.layer_norm_2.weight", "blk.{}.layer_output_norm.weight"},
    {"encoder.layer.{}.layer_norm_2.bias", "blk.{}.layer_output_norm.bias"},
    {"pooler.dense.weight", ""},
    {"pooler.dense.bias", ""},
};

// Jina 3. Its files have a matrix as "parametrizations.weight.original", beside the adapters of
// each task, which are left out: without a task the matrix alone is used.
constexpr TensorRule kJinaBert3[] = {
    {"embeddings.word_embeddings.parametrizations.weight.original", "token_embd.weight"},
    {"embeddings.word_embeddings.parametrizations.weight.{}.lora_A", ""},
    {"embeddings.word_embeddings.parametrizations.weight.{}.lora_B", ""},
    {"embeddings.token_type_embeddings.parametrizations.weight.original", "token_types.weight"},
    {"embeddings.token_type_embeddings.parametrizations.weight.{}.lora_A", ""},
    {"embeddings.token_type_embeddings.parametrizations.weight.{}.lora_B", ""},
    {"encoder.layers.{}.mixer.Wqkv.parametrizations.weight.original", "blk.{}.attn_qkv.weight"},
    {"encoder.layers.{}.mixer.Wqkv.parametrizations.weight.0.lora_A", ""},
    {"encoder.layers.{}.mixer.Wqkv.parametrizations.weight.0.lora_B", ""},
    {"encoder.layers.{}.mixer.out_proj.parametrizations.weight.original",
     "blk.{}.attn_output.weight"},
    {"encoder.layers.{}.mixer.out_proj.parametrizations.weight.0.lora_A", ""},
    {"encoder.layers.{}.mixer.out_proj.parametrizations.weight.0.lora_B", ""},
    {"encoder.layers.{}.mlp.fc1.parametrizations.weight.original", "blk.{}.ffn_up.weight"},
    {"encoder.layers.{}.mlp.fc1.parametrizations.weight.0.lora_A", ""},
    {"encoder.layers.{}.mlp.fc1.parametrizations.weight.0.lora_B", ""},
    {"encoder.layers.{}.mlp.fc2.parametrizations.weight.original", "blk.{}.ffn_down.weight"},
    {"encoder.layers.{}.mlp.fc2.parametrizations.weight.0.lora_A", ""},
    {"encoder.layers.{}.mlp.fc2.parametrizations.weight.0.lora_B", ""},
    {"pooler.dense.parametrizations.weight.original", ""},
    {"pooler.dense.parametrizations.weight.{}.lora_A", ""},
    {"pooler.dense.parametrizations.weight.{}.lora_B", ""},
    {"pooler.dense.weight", ""},
    {"pooler.dense.bias", ""},
    {"embeddings.word_embeddings.weight", "token_embd.weight"},
    {"embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"emb_ln.weight", "token_embd_norm.weight"},
    {"emb_ln.bias", "token_embd_norm.bias"},
    {"encoder.layers.{}.mixer.Wqkv.weight", "blk.{}.attn_qkv.weight"},
    {"encoder.layers.{}.mixer.Wqkv.bias", "blk.{}.attn_qkv.bias"},
    {"encoder.layers.{}.mixer.out_proj.weight", "blk.{}.attn_output.weight"},
    {"encoder.layers.{}.mixer.out_proj.bias", "blk.{}.attn_output.bias"},
    {"encoder.layers.{}.norm1.weight", "blk.{}.attn_output_norm.weight"},
    {"encoder.layers.{}.norm1.bias", "blk.{}.attn_output_norm.bias"},
    {"encoder.layers.{}.mlp.fc1.weight", "blk.{}.ffn_up.weight"},
    {"encoder.layers.{}.mlp.fc1.bias", "blk.{}.ffn_up.bias"},
    {"encoder.layers.{}.mlp.fc2.weight", "blk.{}.ffn_down.weight"},
    {"encoder.layers.{}.mlp.fc2.bias", "blk.{}.ffn_down.bias"},
    {"encoder.layers.{}.norm2.weight", "blk.{}.layer_output_norm.weight"},
    {"encoder.layers.{}.norm2.bias", "blk.{}.layer_output_norm.bias"},
};

constexpr TensorRule kNomicExperts[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight"},
    {"embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"emb_ln.weight", "token_embd_norm.weight"},
    {"emb_ln.bias", "token_embd_norm.bias"},
    {"encoder.layers.{}.attn.Wqkv.weight", "blk.{}.attn_qkv.weight"},
    {"encoder.layers.{}.attn.Wqkv.bias", "blk.{}.attn_qkv.bias"},
    {"encoder.layers.{}.attn.out_proj.weight", "blk.{}.attn_output.weight"},
    {"encoder.layers.{}.attn.out_proj.bias", "blk.{}.attn_output.bias"},
    {"encoder.layers.{}.norm1.weight", "blk.{}.attn_output_norm.weight"},
    {"encoder.layers.{}.norm1.bias", "blk.{}.attn_output_norm.bias"},
    {"encoder.layers.{}.mlp.fc1.weight", "blk.{}.ffn_up.weight"},
    {"encoder.layers.{}.mlp.fc1.bias", "blk.{}.ffn_up.bias"},
    {"encoder.layers.{}.mlp.fc2.weight", "blk.{}.ffn_down.weight"},
    {"encoder.layers.{}.mlp.fc2.bias", "blk.{}.ffn_down.bias"},
    {"encoder.layers.{}.mlp.router.layer.weight", "blk.{}.ffn_gate_inp.weight"},
    {"encoder.layers.{}.mlp.experts.mlp.w1", "blk.{}.ffn_up_exps.weight", by_expert},
    {"encoder.layers.{}.mlp.experts.mlp.w2", "blk.{}.ffn_down_exps.weight", by_expert_transposed},
    // Of the sum of the experts.
    {"encoder.layers.{}.mlp.experts.bias", "blk.{}.ffn_down.bias"},
    {"encoder.layers.{}.norm2.weight", "blk.{}.layer_output_norm.weight"},
    {"encoder.layers.{}.norm2.bias", "blk.{}.layer_output_norm.bias"},
};

// --- hyperparameters
constexpr ConfigRule kEpsilon[] = {
    {"layer_norm_eps", "attention.layer_norm_epsilon", number, false},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", number, false},
};
constexpr ConfigRule kNomicExpertSizes[] = {
    {"num_experts", "expert_count"},
    {"moe_top_k", "expert_used_count"},
    {"moe_every_n_layers", "moe_every_n_layers"},
};

void more_distil_bert(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  to.set(fmt::format("{}attention.layer_norm_epsilon", prefix), 1e-12f);  // not in config.json
  more_bert(config, prefix, to);
}

void more_distil_ranker(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  more_distil_bert(config, prefix, to);
  constexpr uint32_t kRank = 4;  // of llama.cpp's kinds of pooling
  to.set(fmt::format("{}pooling_type", prefix), kRank);
  to.set(fmt::format("{}classifier.activation", prefix), "relu");
}

bool is_rotated_roberta(const JsonView& config) {
  return config["position_embedding_type"].string_or("") == "rotary";
}

bool has_nomic_experts(const JsonView& config) {
  return config["moe_every_n_layers"].integer_or(0) > 0;
}

}  // namespace

std::vector<HfArchitecture> hf_bert_relatives() {
  const Expectation gelu{"hidden_act", {R"("gelu")"}};
  const auto distil_bert = [](std::string_view name, std::span<const TensorRule> head, auto more) {
    return HfArchitecture{.name = name,
                          .gguf = "bert",
                          .tensors = {kDistilBert, head},
                          .config = {kSizes},
                          .expected = {{"activation", {R"("gelu")"}}},
                          .more = more,
                          .is_rotated = false,
                          .prefix = "distilbert."};
  };
  const auto jina_bert = [&](std::string_view name) {
    return HfArchitecture{.name = name,
                          .gguf = "jina-bert-v2",
                          .tensors = {kJinaBert, kBertMask},
                          .config = {kSizes, kEpsilon},
                          .expected = {gelu,
                                       {"position_embedding_type", {R"("alibi")"}},
                                       {"feed_forward_type", {R"("geglu")"}},
                                       {"is_decoder", {"false"}}},
                          .more = more_bert,
                          .is_rotated = false,
                          .prefix = "bert."};
  };
  return {
      distil_bert("DistilBertModel", {}, more_distil_bert),
      distil_bert("DistilBertForMaskedLM", kDistilBertMask, more_distil_bert),
      distil_bert("DistilBertForSequenceClassification", kDistilBertHead, more_distil_ranker),
      jina_bert("JinaBertModel"),
      jina_bert("JinaBertForMaskedLM"),
      {.name = "XLMRobertaModel",
       .gguf = "jina-bert-v3",
       .tensors = {kJinaBert3},
       .config = {kSizes, kEpsilon},
       .expected = {gelu,
                    {"emb_pooler", {}},
                    {"truncate_dim", {}},
                    {"is_decoder", {"false"}},
                    {"use_qk_norm", {"false"}}},
       .more = more_bert,
       .prefix = "roberta.",
       .counts_after_padding = true,
       .fits = is_rotated_roberta},
      {.name = "JinaEmbeddingsV3Model",
       .gguf = "jina-bert-v3",
       .tensors = {kJinaBert3},
       .config = {kSizes, kEpsilon},
       .expected = {gelu},
       .more = more_bert},
      {.name = "NomicBertModel",
       .gguf = "nomic-bert-moe",
       .tensors = {kNomicExperts},
       .config = {kSizes, kEpsilon, kNomicExpertSizes},
       .expected = {{"activation_function", {R"("gelu")"}},
                    {"rotary_emb_fraction", {"1", "1.0"}},
                    {"rotary_emb_interleaved", {"false"}},
                    {"rotary_emb_scale_base", {}},
                    {"rotary_scaling_factor", {}},
                    {"prenorm", {"false"}},
                    {"causal", {"false"}},
                    {"use_rms_norm", {"false"}},
                    {"parallel_block", {"false"}},
                    {"scale_attn_weights", {"true"}},
                    {"scale_attn_by_inverse_layer_idx", {"false"}},
                    {"moe_normalize_expert_weights", {"false"}},
                    {"expert_choice_router", {"false"}},
                    {"num_shared_experts", {"0"}}},
       .more = more_bert,
       .fits = has_nomic_experts},
  };
}

}  // namespace prism::llm
