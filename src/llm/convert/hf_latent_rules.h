// The rules of latent attention that several files of the table share.
#pragma once

#include "llm/convert/hf_rules.h"

namespace prism::llm {

inline constexpr TensorRule kLatent[] = {
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"model.layers.{}.self_attn.q_a_proj.weight", "blk.{}.attn_q_a.weight"},
    {"model.layers.{}.self_attn.q_a_layernorm.weight", "blk.{}.attn_q_a_norm.weight"},
    {"model.layers.{}.self_attn.q_b_proj.weight", "blk.{}.attn_q_b.weight"},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa.weight", "blk.{}.attn_kv_a_mqa.weight"},
    {"model.layers.{}.self_attn.kv_a_layernorm.weight", "blk.{}.attn_kv_a_norm.weight"},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_k_b.weight",
     TensorChange::latent_keys},
    {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_v_b.weight",
     TensorChange::latent_values},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
};
inline constexpr ConfigRule kLatentSizes[] = {
    {"q_lora_rank", "attention.q_lora_rank", ConfigKind::integer, false},
    {"kv_lora_rank", "attention.kv_lora_rank"},
    {"v_head_dim", "attention.value_length_mla"},
};

}  // namespace prism::llm
