// The Hugging Face decoders whose code is in their folders and whose tensors have the names of
// GPT-2.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kGptEnds[] = {
    {"wte.weight", "token_embd.weight"},
    {"ln_f.weight", "output_norm.weight"},
    {"ln_f.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},
    {"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    {"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    {"h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    {"h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    {"h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    {"h.{}.attn.bias", ""},  // the causal mask
    {"h.{}.attn.rotary_emb.inv_freq", ""},
};
constexpr TensorRule kGptAttention[] = {
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight"},
    {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight"},
    {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
};
constexpr TensorRule kQwen[] = {
    {"h.{}.mlp.w1.weight", "blk.{}.ffn_up.weight"},
    {"h.{}.mlp.w2.weight", "blk.{}.ffn_gate.weight"},
};
constexpr TensorRule kCodeShell[] = {{"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"}};
constexpr TensorRule kRefact[] = {
    {"h.{}.attn.q.weight", "blk.{}.attn_q.weight"},
    {"h.{}.attn.kv.weight", "blk.{}.attn_k.weight", first_half},
    {"h.{}.attn.kv.weight", "blk.{}.attn_v.weight", second_half},
    {"h.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_gate.weight", first_half},
    {"h.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight", second_half},
};
constexpr TensorRule kJais[] = {
    {"wte.weight", "output.weight"},  // with a factor of its own
    {"relative_pe.slopes", ""},       // computed from the number of heads
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", transposed},
    {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", transposed},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", transposed},
    {"h.{}.mlp.c_fc2.weight", "blk.{}.ffn_gate.weight", transposed},
    {"h.{}.mlp.c_fc2.bias", "blk.{}.ffn_gate.bias"},
    {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", transposed},
};

// --- hyperparameters
constexpr ConfigRule kRmsEpsilon[] = {
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", number},
};
constexpr ConfigRule kEpsilon[] = {
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", number},
};

// --- what rows of the table cannot say
// Beyond the length of its training, bases grow and scores are scaled.
int64_t qwen_context(const JsonView& config) {
  const bool changes =
      config["use_dynamic_ntk"].boolean_or(true) || config["use_logn_attn"].boolean_or(true);
  return changes ? config["seq_length"].integer_or(2048, 1, 1 << 30) : 0;
}

void more_codeshell(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const bool is_grouped = config["group_query_attention"].boolean_or(true);
  set_size(prefix, "attention.head_count_kv",
           size_of(config, is_grouped ? "num_query_groups" : "num_attention_heads"), to);
}

void more_refact(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const int64_t width = 4 * size_of(config, "hidden_size") * 2 / 3;
  set_size(prefix, "feed_forward_length", (width + 255) / 256 * 256, to);
  to.set(fmt::format("{}attention.head_count_kv", prefix), uint32_t{1});
}

// Names of settings differ between the models of 2023 and those of 2024.
double jais_setting(const JsonView& config, const char* mup, const char* plain) {
  const JsonView found = config[mup] ? config[mup] : config[plain];
  if (!found) refuse(fmt::format("neither {} nor {} is there", mup, plain));
  return found.number(1e-9, 1e9);
}

std::vector<RowFactor> jais_factors(const JsonView& config, std::string_view to, int64_t) {
  constexpr int64_t kRows = int64_t{1} << 24;  // all
  if (to == "token_embd.weight")
    return {{kRows, jais_setting(config, "mup_embeddings_scale", "embeddings_scale")}};
  if (to != "output.weight") return {};
  const double alpha = config["mup_width_scale"] ? config["mup_output_alpha"].number(1e-9, 1e9) : 1;
  return {{kRows, alpha * jais_setting(config, "mup_width_scale", "width_scale")}};
}

void more_jais(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  const JsonView divides =
      config[config["mup_scale_qk_dot_by_d"] ? "mup_scale_qk_dot_by_d" : "scale_qk_dot_by_d"];
  if (!divides.boolean_or(false))
    refuse("scale_qk_dot_by_d is not true; Prism's Jais divides scores by the length of a head");
  to.set(fmt::format("{}attention.max_alibi_bias", prefix), 8.0f);
}

}  // namespace

std::vector<HfArchitecture> hf_gpt_variants() {
  const Expectation scaled{"scale_attn_weights", {"true"}};
  return {
      {.name = "QWenLMHeadModel",
       .gguf = "qwen",
       .tensors = {kGptEnds, kGptAttention, kQwen},
       .config = {kSizes, kRmsEpsilon},
       .expected = {scaled, {"no_bias", {"true"}}},
       .prefix = "transformer.",
       .right_up_to = qwen_context},
      {.name = "CodeShellForCausalLM",
       .gguf = "codeshell",
       .tensors = {kGptEnds, kGptAttention, kCodeShell},
       .config = {kSizes, kEpsilon},
       .expected = {scaled,
                    {"activation_function", {R"("gelu_new")", R"("gelu_pytorch_tanh")"}},
                    {"position_embedding_type", {R"("rope")"}}},
       .more = more_codeshell,
       .prefix = "transformer."},
      {.name = "GPTRefactForCausalLM",
       .gguf = "refact",
       .tensors = {kGptEnds, kGptAttention, kRefact},
       .config = {kSizes, kRmsEpsilon},
       .expected = {{"multi_query", {"true"}}},
       .more = more_refact,
       .is_rotated = false,
       .prefix = "transformer."},
      {.name = "JAISLMHeadModel",
       .gguf = "jais",
       .tensors = {kGptEnds, kJais},
       .config = {kSizes, kEpsilon},
       .expected = {scaled,
                    {"activation_function", {R"("swiglu")"}},
                    {"position_embedding_type", {R"("alibi")"}},
                    {"scale_attn_by_inverse_layer_idx", {"false"}},
                    {"add_cross_attention", {"false"}},
                    {"alibi_scaling", {}}},
       .more = more_jais,
       .is_rotated = false,
       .is_tied = true,
       .prefix = "transformer.",
       .factors = jais_factors},
  };
}

}  // namespace prism::llm
