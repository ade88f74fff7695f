// The Hugging Face folders of RWKV 6 and 7, alone or in the layers of Qwen 2.
#include <cmath>

#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_rules.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kRwkv6[] = {
    {"rwkv.embeddings.weight", "token_embd.weight"},
    {"rwkv.blocks.0.pre_ln.weight", "token_embd_norm.weight"},
    {"rwkv.blocks.0.pre_ln.bias", "token_embd_norm.bias"},
    {"rwkv.ln_out.weight", "output_norm.weight"},
    {"rwkv.ln_out.bias", "output_norm.bias"},
    {"head.weight", "output.weight"},
    {"rwkv.blocks.{}.ln1.weight", "blk.{}.attn_norm.weight"},
    {"rwkv.blocks.{}.ln1.bias", "blk.{}.attn_norm.bias"},
    {"rwkv.blocks.{}.ln2.weight", "blk.{}.attn_norm_2.weight"},
    {"rwkv.blocks.{}.ln2.bias", "blk.{}.attn_norm_2.bias"},
    {"rwkv.blocks.{}.attention.time_maa_x", "blk.{}.time_mix_lerp_x.weight", flattened},
    {"rwkv.blocks.{}.attention.time_maa_w", "blk.{}.time_mix_lerp_fused.weight", spread, 0, 5},
    {"rwkv.blocks.{}.attention.time_maa_k", "blk.{}.time_mix_lerp_fused.weight", spread, 1, 5},
    {"rwkv.blocks.{}.attention.time_maa_v", "blk.{}.time_mix_lerp_fused.weight", spread, 2, 5},
    {"rwkv.blocks.{}.attention.time_maa_r", "blk.{}.time_mix_lerp_fused.weight", spread, 3, 5},
    {"rwkv.blocks.{}.attention.time_maa_g", "blk.{}.time_mix_lerp_fused.weight", spread, 4, 5},
    {"rwkv.blocks.{}.attention.time_maa_w1", "blk.{}.time_mix_w1.weight", transposed},
    {"rwkv.blocks.{}.attention.time_maa_w2", "blk.{}.time_mix_w2.weight", transposed},
    {"rwkv.blocks.{}.attention.time_decay", "blk.{}.time_mix_decay.weight", flattened},
    {"rwkv.blocks.{}.attention.time_decay_w1", "blk.{}.time_mix_decay_w1.weight", transposed},
    {"rwkv.blocks.{}.attention.time_decay_w2", "blk.{}.time_mix_decay_w2.weight", transposed},
    {"rwkv.blocks.{}.attention.time_faaaa", "blk.{}.time_mix_first.weight"},
    {"rwkv.blocks.{}.attention.receptance.weight", "blk.{}.time_mix_receptance.weight"},
    {"rwkv.blocks.{}.attention.key.weight", "blk.{}.time_mix_key.weight"},
    {"rwkv.blocks.{}.attention.value.weight", "blk.{}.time_mix_value.weight"},
    {"rwkv.blocks.{}.attention.gate.weight", "blk.{}.time_mix_gate.weight"},
    {"rwkv.blocks.{}.attention.output.weight", "blk.{}.time_mix_output.weight"},
    {"rwkv.blocks.{}.attention.ln_x.weight", "blk.{}.time_mix_ln.weight"},
    {"rwkv.blocks.{}.attention.ln_x.bias", "blk.{}.time_mix_ln.bias"},
    {"rwkv.blocks.{}.feed_forward.time_maa_k", "blk.{}.channel_mix_lerp_k.weight", flattened},
    {"rwkv.blocks.{}.feed_forward.time_maa_r", "blk.{}.channel_mix_lerp_r.weight", flattened},
    {"rwkv.blocks.{}.feed_forward.key.weight", "blk.{}.channel_mix_key.weight"},
    {"rwkv.blocks.{}.feed_forward.value.weight", "blk.{}.channel_mix_value.weight"},
    {"rwkv.blocks.{}.feed_forward.receptance.weight", "blk.{}.channel_mix_receptance.weight"},
};
constexpr TensorRule kQwenWith6[] = {
    {"model.layers.{}.self_attn.time_maa_x", "blk.{}.time_mix_lerp_x.weight", flattened},
    {"model.layers.{}.self_attn.time_maa_w", "blk.{}.time_mix_lerp_fused.weight", spread, 0, 5},
    {"model.layers.{}.self_attn.time_maa_k", "blk.{}.time_mix_lerp_fused.weight", spread, 1, 5},
    {"model.layers.{}.self_attn.time_maa_v", "blk.{}.time_mix_lerp_fused.weight", spread, 2, 5},
    {"model.layers.{}.self_attn.time_maa_r", "blk.{}.time_mix_lerp_fused.weight", spread, 3, 5},
    {"model.layers.{}.self_attn.time_maa_g", "blk.{}.time_mix_lerp_fused.weight", spread, 4, 5},
    {"model.layers.{}.self_attn.time_maa_w1", "blk.{}.time_mix_w1.weight", swapped_mixes},
    {"model.layers.{}.self_attn.time_maa_w2", "blk.{}.time_mix_w2.weight", swapped_mixes},
    {"model.layers.{}.self_attn.time_decay", "blk.{}.time_mix_decay.weight", flattened},
    {"model.layers.{}.self_attn.time_decay_w1", "blk.{}.time_mix_decay_w1.weight", transposed},
    {"model.layers.{}.self_attn.time_decay_w2", "blk.{}.time_mix_decay_w2.weight", transposed},
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.time_mix_receptance.weight"},
    {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.time_mix_receptance.bias"},
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.time_mix_key.weight"},
    {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.time_mix_key.bias"},
    {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.time_mix_value.weight"},
    {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.time_mix_value.bias"},
    {"model.layers.{}.self_attn.gate.weight", "blk.{}.time_mix_gate.weight"},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.time_mix_output.weight"},
};
constexpr TensorRule kRwkv7[] = {
    {"model.embeddings.weight", "token_embd.weight"},
    {"model.layers.0.pre_norm.weight", "token_embd_norm.weight"},
    {"model.layers.0.pre_norm.bias", "token_embd_norm.bias"},
    {"model.norm.weight", "output_norm.weight"},
    {"model.norm.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},
    {"model.layers.{}.attn_norm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.attn_norm.bias", "blk.{}.attn_norm.bias"},
    {"model.layers.{}.ffn_norm.weight", "blk.{}.attn_norm_2.weight"},
    {"model.layers.{}.ffn_norm.bias", "blk.{}.attn_norm_2.bias"},
    {"model.layers.{}.attn.x_x", "blk.{}.time_mix_lerp_fused.weight", spread},  // of early folders
    {"model.layers.{}.attn.x_r", "blk.{}.time_mix_lerp_fused.weight", spread, 0, 6},
    {"model.layers.{}.attn.x_w", "blk.{}.time_mix_lerp_fused.weight", spread, 1, 6},
    {"model.layers.{}.attn.x_k", "blk.{}.time_mix_lerp_fused.weight", spread, 2, 6},
    {"model.layers.{}.attn.x_v", "blk.{}.time_mix_lerp_fused.weight", spread, 3, 6},
    {"model.layers.{}.attn.x_a", "blk.{}.time_mix_lerp_fused.weight", spread, 4, 6},
    {"model.layers.{}.attn.x_g", "blk.{}.time_mix_lerp_fused.weight", spread, 5, 6},
    {"model.layers.{}.attn.w_lora.lora.0.weight", "blk.{}.time_mix_w1.weight"},
    {"model.layers.{}.attn.w_lora.lora.2.weight", "blk.{}.time_mix_w2.weight"},
    {"model.layers.{}.attn.w_lora.lora.2.bias", "blk.{}.time_mix_w0.weight"},
    {"model.layers.{}.attn.a_lora.lora.0.weight", "blk.{}.time_mix_a1.weight"},
    {"model.layers.{}.attn.a_lora.lora.2.weight", "blk.{}.time_mix_a2.weight"},
    {"model.layers.{}.attn.a_lora.lora.2.bias", "blk.{}.time_mix_a0.weight"},
    {"model.layers.{}.attn.v_lora.lora.0.weight", "blk.{}.time_mix_v1.weight"},
    {"model.layers.{}.attn.v_lora.lora.2.weight", "blk.{}.time_mix_v2.weight"},
    {"model.layers.{}.attn.v_lora.lora.2.bias", "blk.{}.time_mix_v0.weight"},
    // The first layer mixes in no values. GGUF files have matrices there all the same.
    {"model.layers.0.attn.a_lora.lora.0.weight", "blk.0.time_mix_a1.weight"},
    {"model.layers.0.attn.a_lora.lora.0.weight", "blk.0.time_mix_v1.weight"},
    {"model.layers.0.attn.a_lora.lora.2.weight", "blk.0.time_mix_a2.weight"},
    {"model.layers.0.attn.a_lora.lora.2.weight", "blk.0.time_mix_v2.weight"},
    {"model.layers.0.attn.a_lora.lora.2.bias", "blk.0.time_mix_a0.weight"},
    {"model.layers.0.attn.a_lora.lora.2.bias", "blk.0.time_mix_v0.weight"},
    {"model.layers.0.attn.v_lora.lora.0.weight", ""},
    {"model.layers.0.attn.v_lora.lora.2.weight", ""},
    {"model.layers.0.attn.v_lora.lora.2.bias", ""},
    {"model.layers.{}.attn.g_lora.lora.0.weight", "blk.{}.time_mix_g1.weight"},
    {"model.layers.{}.attn.g_lora.lora.2.weight", "blk.{}.time_mix_g2.weight"},
    {"model.layers.{}.attn.k_k", "blk.{}.time_mix_k_k.weight", flattened},
    {"model.layers.{}.attn.k_a", "blk.{}.time_mix_k_a.weight", flattened},
    {"model.layers.{}.attn.r_k", "blk.{}.time_mix_r_k.weight", flattened},
    {"model.layers.{}.attn.r_proj.weight", "blk.{}.time_mix_receptance.weight"},
    {"model.layers.{}.attn.k_proj.weight", "blk.{}.time_mix_key.weight"},
    {"model.layers.{}.attn.v_proj.weight", "blk.{}.time_mix_value.weight"},
    {"model.layers.{}.attn.o_proj.weight", "blk.{}.time_mix_output.weight"},
    {"model.layers.{}.attn.g_norm.weight", "blk.{}.time_mix_ln.weight"},
    {"model.layers.{}.attn.g_norm.bias", "blk.{}.time_mix_ln.bias"},
    {"model.layers.{}.ffn.x_k", "blk.{}.channel_mix_lerp_k.weight", flattened},
    {"model.layers.{}.ffn.key.weight", "blk.{}.channel_mix_key.weight"},
    {"model.layers.{}.ffn.value.weight", "blk.{}.channel_mix_value.weight"},
};
constexpr TensorRule kQwenWith7[] = {
    {"model.layers.{}.self_attn.time_mixer.w0", "blk.{}.time_mix_w0.weight", flattened},
    {"model.layers.{}.self_attn.time_mixer.w1", "blk.{}.time_mix_w1.weight", transposed},
    {"model.layers.{}.self_attn.time_mixer.w2", "blk.{}.time_mix_w2.weight", transposed},
    {"model.layers.{}.self_attn.time_mixer.a0", "blk.{}.time_mix_a0.weight", flattened},
    {"model.layers.{}.self_attn.time_mixer.a1", "blk.{}.time_mix_a1.weight", transposed},
    {"model.layers.{}.self_attn.time_mixer.a2", "blk.{}.time_mix_a2.weight", transposed},
    {"model.layers.{}.self_attn.time_mixer.v0", "blk.{}.time_mix_v0.weight", flattened},
    {"model.layers.{}.self_attn.time_mixer.v1", "blk.{}.time_mix_v1.weight", transposed},
    {"model.layers.{}.self_attn.time_mixer.v2", "blk.{}.time_mix_v2.weight", transposed},
    // As in RWKV 7, the first layer has matrices that are not used.
    {"model.layers.0.self_attn.time_mixer.a0", "blk.0.time_mix_a0.weight", flattened},
    {"model.layers.0.self_attn.time_mixer.a0", "blk.0.time_mix_v0.weight", flattened},
    {"model.layers.0.self_attn.time_mixer.a1", "blk.0.time_mix_a1.weight", transposed},
    {"model.layers.0.self_attn.time_mixer.a1", "blk.0.time_mix_v1.weight", transposed},
    {"model.layers.0.self_attn.time_mixer.a2", "blk.0.time_mix_a2.weight", transposed},
    {"model.layers.0.self_attn.time_mixer.a2", "blk.0.time_mix_v2.weight", transposed},
    {"model.layers.0.self_attn.time_mixer.v0", ""},
    {"model.layers.0.self_attn.time_mixer.v1", ""},
    {"model.layers.0.self_attn.time_mixer.v2", ""},
    {"model.layers.{}.self_attn.time_mixer.g1", "blk.{}.time_mix_g1.weight", transposed},
    {"model.layers.{}.self_attn.time_mixer.g2", "blk.{}.time_mix_g2.weight", transposed},
    {"model.layers.{}.self_attn.time_mixer.k_k", "blk.{}.time_mix_k_k.weight", flattened},
    {"model.layers.{}.self_attn.time_mixer.k_a", "blk.{}.time_mix_k_a.weight", flattened},
    {"model.layers.{}.self_attn.time_mixer.r_k", "blk.{}.time_mix_r_k.weight", flattened},
    {"model.layers.{}.self_attn.time_mixer.receptance.weight", "blk.{}.time_mix_receptance.weight"},
    {"model.layers.{}.self_attn.time_mixer.key.weight", "blk.{}.time_mix_key.weight"},
    {"model.layers.{}.self_attn.time_mixer.value.weight", "blk.{}.time_mix_value.weight"},
    {"model.layers.{}.self_attn.time_mixer.output.weight", "blk.{}.time_mix_output.weight"},
    {"model.layers.{}.self_attn.time_mixer.ln_x.weight", "blk.{}.time_mix_ln.weight"},
    {"model.layers.{}.self_attn.time_mixer.ln_x.bias", "blk.{}.time_mix_ln.bias"},
};
constexpr TensorRule kMixedWithGate[] = {
    {"model.layers.{}.self_attn.time_mixer.x_r", "blk.{}.time_mix_lerp_fused.weight", spread, 0, 6},
    {"model.layers.{}.self_attn.time_mixer.x_w", "blk.{}.time_mix_lerp_fused.weight", spread, 1, 6},
    {"model.layers.{}.self_attn.time_mixer.x_k", "blk.{}.time_mix_lerp_fused.weight", spread, 2, 6},
    {"model.layers.{}.self_attn.time_mixer.x_v", "blk.{}.time_mix_lerp_fused.weight", spread, 3, 6},
    {"model.layers.{}.self_attn.time_mixer.x_a", "blk.{}.time_mix_lerp_fused.weight", spread, 4, 6},
    {"model.layers.{}.self_attn.time_mixer.x_g", "blk.{}.time_mix_lerp_fused.weight", spread, 5, 6},
};
constexpr TensorRule kMixedWithoutGate[] = {
    {"model.layers.{}.self_attn.time_mixer.x_r", "blk.{}.time_mix_lerp_fused.weight", spread, 0, 5},
    {"model.layers.{}.self_attn.time_mixer.x_w", "blk.{}.time_mix_lerp_fused.weight", spread, 1, 5},
    {"model.layers.{}.self_attn.time_mixer.x_k", "blk.{}.time_mix_lerp_fused.weight", spread, 2, 5},
    {"model.layers.{}.self_attn.time_mixer.x_v", "blk.{}.time_mix_lerp_fused.weight", spread, 3, 5},
    {"model.layers.{}.self_attn.time_mixer.x_a", "blk.{}.time_mix_lerp_fused.weight", spread, 4, 5},
};

// --- hyperparameters
constexpr ConfigRule kWidths[] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
};
constexpr ConfigRule kRwkv6Sizes[] = {
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", number},
    {"head_size", "wkv.head_size"},
    {"rescale_every", "rescale_every_n_layers"},
};
constexpr ConfigRule kRwkv7Sizes[] = {
    {"norm_eps", "attention.layer_norm_epsilon", number},
    {"head_dim", "wkv.head_size"},
};
constexpr ConfigRule kInQwen[] = {
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", number},
    {"intermediate_size", "feed_forward_length"},
};

// --- what rows of the table cannot say
// The state has the same size for texts of any length.
void have_no_attention(std::string_view prefix, GgufWriter& to) {
  set_size(prefix, "attention.head_count", 0, to);
  set_size(prefix, "context_length", 1 << 20, to);
}

void more_rwkv6(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  have_no_attention(prefix, to);
  const int64_t width = size_of(config, "hidden_size");
  if (const int64_t inner = config["attention_hidden_size"].integer_or(width); inner != width)
    refuse(fmt::format("attention_hidden_size is {}; Prism's rwkv6 has that of hidden_size, {}",
                       inner, width));
  set_size(prefix, "feed_forward_length",
           config["intermediate_size"].integer_or(width * 7 / 2 / 32 * 32, 1, 1 << 20), to);
}

// Later layers have smaller outputs, so that sums stay within f16; each rescale_every layers halve
// the sum.
std::vector<RowFactor> rwkv6_factors(const JsonView& config, std::string_view to, int64_t layer) {
  const int64_t every = config["rescale_every"].integer_or(0, 0, 4096);
  const bool is_rescaled =
      to == "blk.{}.time_mix_output.weight" || to == "blk.{}.channel_mix_value.weight";
  if (!is_rescaled || every == 0) return {};
  return {{int64_t{1} << 40, std::exp2(-static_cast<double>(layer / every))}};
}

// The number of rows or columns of a tensor of the first layer.
int64_t length_of(const HfFolder& folder, const std::string& name, int64_t axis) {
  const auto found = folder.tensors().find(name);
  if (found == folder.tensors().end() || found->second.shape.rank() < 2)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: there is no matrix {}", folder.path(), name));
  return found->second.shape[axis];
}

void set_rwkv6_ranks(const HfFolder& folder, std::string_view prefix, const std::string& names,
                     GgufWriter& to) {
  set_size(prefix, "time_mix_extra_dim", length_of(folder, names + "time_maa_w2", 1), to);
  set_size(prefix, "time_decay_extra_dim", length_of(folder, names + "time_decay_w1", 1), to);
}

void set_rwkv7_ranks(const HfFolder& folder, std::string_view prefix, const char* const (&names)[3],
                     int64_t axis, GgufWriter& to) {
  set_size(prefix, "attention.decay_lora_rank", length_of(folder, names[0], axis), to);
  set_size(prefix, "attention.iclr_lora_rank", length_of(folder, names[1], axis), to);
  set_size(prefix, "attention.value_residual_mix_lora_rank", length_of(folder, names[2], axis), to);
}

void rwkv6_tensors(const HfFolder& folder, GgufWriter& to) {
  set_rwkv6_ranks(folder, "rwkv6.", "rwkv.blocks.0.attention.", to);
}

void qwen_6_tensors(const HfFolder& folder, GgufWriter& to) {
  set_rwkv6_ranks(folder, "rwkv6qwen2.", "model.layers.0.self_attn.", to);
}

void rwkv7_tensors(const HfFolder& folder, GgufWriter& to) {
  set_rwkv7_ranks(
      folder, "rwkv7.",
      {"model.layers.0.attn.w_lora.lora.0.weight", "model.layers.0.attn.a_lora.lora.0.weight",
       "model.layers.1.attn.v_lora.lora.0.weight"},
      0, to);
  set_size("rwkv7.", "attention.gate_lora_rank",
           length_of(folder, "model.layers.0.attn.g_lora.lora.0.weight", 0), to);
}

void qwen_7_tensors(const HfFolder& folder, GgufWriter& to) {
  set_rwkv7_ranks(
      folder, "arwkv7.",
      {"model.layers.0.self_attn.time_mixer.w1", "model.layers.0.self_attn.time_mixer.a1",
       "model.layers.1.self_attn.time_mixer.v1"},
      1, to);
  const std::string gate = "model.layers.0.self_attn.time_mixer.g1";
  set_size("arwkv7.", "attention.gate_lora_rank",
           folder.tensors().contains(gate) ? length_of(folder, gate, 1) : 0, to);
}

void more_rwkv7(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  have_no_attention(prefix, to);
  const int64_t width = size_of(config, "hidden_size");
  for (const JsonView& each : config["value_dim"].items())
    if (each.integer() != width)
      refuse(fmt::format("value_dim has {}; Prism's rwkv7 has values of hidden_size, {}",
                         each.integer(), width));
  // The norm of heads in Prism adds this to the variance.
  constexpr double kHeadEpsilon = 64e-5;
  const double epsilon =
      static_cast<double>(size_of(config, "head_dim")) * config["norm_eps"].number(0, 1);
  if (std::abs(epsilon - kHeadEpsilon) > 1e-6 * kHeadEpsilon)
    refuse(
        fmt::format("head_dim times norm_eps is {}; Prism's rwkv7 has {}", epsilon, kHeadEpsilon));
  const double ratio = config["hidden_ratio"].number_or(4, 0, 1e3);
  const int64_t wide = static_cast<int64_t>(static_cast<double>(width) * ratio);
  set_size(prefix, "feed_forward_length",
           config["intermediate_size"].integer_or((wide + 31) / 32 * 32, 1, 1 << 20), to);
}

void more_qwen_6(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  have_no_attention(prefix, to);
  const int64_t width = size_of(config, "hidden_size"),
                heads = config["num_attention_heads"].integer(1, 1 << 16);
  if (width % heads != 0 || head_length(config) != width / heads)
    refuse(fmt::format("{} heads have {} elements each; Prism's rwkv6qwen2 needs {} in all", heads,
                       head_length(config), width));
  set_size(prefix, "wkv.head_size", width / heads, to);
  set_size(prefix, "attention.head_count_kv", config["num_key_value_heads"].integer(1, heads), to);
  set_size(prefix, "token_shift_count", 1, to);
}

void more_qwen_7(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  have_no_attention(prefix, to);
  const int64_t width = size_of(config, "hidden_size"), head = size_of(config, "head_size");
  if (const int64_t heads = config["num_wkv_heads"].integer_or(width / head); heads * head != width)
    refuse(fmt::format("num_wkv_heads is {} and head_size {}; Prism's arwkv7 needs {} in all",
                       heads, head, width));
  set_size(prefix, "wkv.head_size", head, to);
  set_size(prefix, "token_shift_count", 1, to);
}

bool has_gate(const JsonView& config) { return config["wkv_has_gate"].boolean_or(true); }

}  // namespace

std::vector<HfArchitecture> hf_rwkv_decoders() {
  const Expectation usual_epsilon{"head_size_divisor", {"8"}};  // of the norm of heads
  HfArchitecture in_qwen7{.name = "RwkvHybridForCausalLM",
                          .gguf = "arwkv7",
                          .tensors = {kEnds, kNorms, kQwenWith7, kFeedForward, kMixedWithGate},
                          .config = {kWidths, kInQwen},
                          .expected = {kSilu, usual_epsilon, {"wkv_version", {"7"}}},
                          .more = more_qwen_7,
                          .is_rotated = false,
                          .has_heads = false,
                          .default_context = 1 << 20,
                          .from_tensors = qwen_7_tensors,
                          .fits = has_gate};
  HfArchitecture ungated = in_qwen7;
  ungated.tensors.back() = kMixedWithoutGate;
  ungated.fits = nullptr;
  return {
      {.name = "Rwkv6ForCausalLM",
       .gguf = "rwkv6",
       .tensors = {kRwkv6},
       .config = {kWidths, kRwkv6Sizes},
       .expected = {usual_epsilon},
       .more = more_rwkv6,
       .is_rotated = false,
       .has_heads = false,
       .default_context = 1 << 20,
       .from_tensors = rwkv6_tensors,
       .factors = rwkv6_factors},
      {.name = "RWKV7ForCausalLM",
       .gguf = "rwkv7",
       .tensors = {kRwkv7},
       .config = {kWidths, kRwkv7Sizes},
       .expected = {{"hidden_act", {R"("sqrelu")"}},
                    {"norm_first", {"true"}},
                    {"norm_bias", {"true"}},
                    {"attn", {}}},
       .more = more_rwkv7,
       .is_rotated = false,
       .has_heads = false,
       .default_context = 1 << 20,
       .from_tensors = rwkv7_tensors},
      {.name = "RWKV6Qwen2ForCausalLM",
       .gguf = "rwkv6qwen2",
       .tensors = {kEnds, kNorms, kQwenWith6, kFeedForward},
       .config = {kWidths, kInQwen},
       .expected = {kSilu,
                    {"balance_state", {"true"}},
                    {"groupnorm_att", {"false"}},
                    {"use_tokenshift", {"true"}},
                    {"use_rope", {"false"}}},
       .more = more_qwen_6,
       .is_rotated = false,
       .has_heads = false,
       .default_context = 1 << 20,
       .from_tensors = qwen_6_tensors},
      in_qwen7,
      ungated,
  };
}

}  // namespace prism::llm
