// The Hugging Face decoders that are another model's with a few layers of their own: Granite's
// experts with windows, Bamba, GroveMoE, Grok.
#include <algorithm>

#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_rules.h"

namespace prism::llm {

namespace {

using enum TensorChange;
using enum ConfigKind;

// --- tensors
constexpr TensorRule kGraniteSwaExperts[] = {
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"},
    {"model.layers.{}.block_sparse_moe.router.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"},
    {"model.layers.{}.block_sparse_moe.experts.down_proj", "blk.{}.ffn_down_exps.weight"},
    {"model.layers.{}.shared_mlp.input_linear.weight", "blk.{}.ffn_up_shexp.weight"},
    {"model.layers.{}.shared_mlp.output_linear.weight", "blk.{}.ffn_down_shexp.weight"},
};
constexpr TensorRule kGrove[] = {
    {"model.layers.{}.mlp.chunk_experts.{}.gate_proj.weight", "blk.{}.ffn_gate_chexps.weight", none,
     0, 2},
    {"model.layers.{}.mlp.chunk_experts.{}.up_proj.weight", "blk.{}.ffn_up_chexps.weight", none, 0,
     2},
    {"model.layers.{}.mlp.chunk_experts.{}.down_proj.weight", "blk.{}.ffn_down_chexps.weight", none,
     0, 2},
    {"model.layers.{}.mlp.expert_bias", ""},  // not used by the model
};

// --- hyperparameters
constexpr ConfigRule kGraniteSwaSizes[] = {
    {"num_local_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"shared_intermediate_size", "expert_shared_feed_forward_length", integer, false},
};

// --- what rows of the table cannot say
void more_bamba(const JsonView& config, std::string_view prefix, GgufWriter& to) {
  if (rotated_elements(config, head_length(config)) == head_length(config))
    refuse("attn_rotary_emb and partial_rotary_factor are missing; Bamba rotates half a head");
  const auto heads = static_cast<int32_t>(config["num_key_value_heads"].integer(1, 1 << 16));
  std::vector<int32_t> key_heads(static_cast<size_t>(config["num_hidden_layers"].integer(1, 4096)));
  for (const JsonView& each : config["attn_layer_indices"].items())
    key_heads[static_cast<size_t>(each.integer(0, static_cast<int64_t>(key_heads.size()) - 1))] =
        heads;
  to.set(fmt::format("{}attention.head_count_kv", prefix), key_heads);
  set_size(prefix, "ssm.inner_size",
           size_of(config, "mamba_expand") * size_of(config, "hidden_size"), to);
}

// Two experts share a smaller one, whose weight is theirs times this factor. The sizes are
// constants of the model's code.
void more_grove(const JsonView&, std::string_view prefix, GgufWriter& to) {
  set_size(prefix, "experts_per_group", 2, to);
  to.set(fmt::format("{}expert_group_scale", prefix), 0.05f);
  // llama.cpp's files lack the key, and are computed as llama.cpp does it.
  to.set(fmt::format("{}expert_groups_see_input", prefix), true);
}

void grove_tensors(const HfFolder& folder, GgufWriter& to) {
  const auto found = folder.tensors().find("model.layers.0.mlp.chunk_experts.0.up_proj.weight");
  if (found != folder.tensors().end())
    set_size("grovemoe.", "expert_chunk_feed_forward_length", found->second.shape[0], to);
}

}  // namespace

std::vector<HfArchitecture> hf_mixture_variants() {
  return {
      {.name = "GraniteMoeSWAForCausalLM",
       .gguf = "granite_swa",
       .tensors = {kEnds, kNorms, kAdjacentQueryKey, kValueOutput, kGraniteExperts,
                   kGraniteSwaExperts},
       .config = {kSizes, kDecoder, kWindow, kGraniteScales, kGraniteSwaSizes},
       .expected = {kSilu},
       .has_windows = true,
       .more = set_granite_windows},
      {.name = "BambaForCausalLM",
       .gguf = "granitehybrid",
       .tensors = {kEnds, kPreNorms, kAdjacentQueryKey, kValueOutput, kMambaBeside},
       .config = {kSizes, kDecoder, kMambaBesideSizes},
       .expected = {kSilu, {"mamba_proj_bias", {"false"}}},
       .more = more_bamba},
      {.name = "GroveMoeForCausalLM",
       .gguf = "grovemoe",
       .tensors = {kEnds, kNorms, kQueryKey, kValueOutput, kExperts, kGrove},
       .config = {kSizes, kDecoder, kQwenMoe},
       .expected = {kSilu,
                    {"mlp_only_layers", {"[]"}},
                    {"decoder_sparse_step", {"1"}},
                    {"norm_topk_prob", {"true"}}},
       .more = more_grove,
       .from_tensors = grove_tensors},
  };
}

}  // namespace prism::llm
