// The hyperparameters of a model, as its file's metadata gives them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"
#include "prism/ops/rope.h"
#include "prism/rope_scaling.h"

namespace prism::llm {

enum class Pooling : uint8_t { none, mean, first, last };  // of rows to one embedding

struct Config {
  std::string architecture;  // "llama"
  std::string name;          // as people call it; may be empty
  int64_t layers = 0;
  int64_t width = 0;  // of a token's vector between layers
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;  // that the model was trained for
  double norm_epsilon = 1e-5;

  // --- positions
  RopePairing pairing = RopePairing::halves;
  int64_t rope_dims = 0;  // rotated elements of a head; 0: no rotation at all
  double rope_base = 10000;
  double local_rope_base = 0;  // of windowed layers, unscaled; 0: as all others
  RopeScaling rope_scaling;
  double rope_magnitude = 0;   // 0: what the scaling says
  int64_t unrotated_step = 0;  // every n-th layer goes without; 0: none

  // --- attention
  bool causal = true;
  double attention_scale = 0;  // 0: one over the root of head_dim
  double attention_soft_cap = 0, logit_soft_cap = 0;
  int64_t window = 0;       // keys that windowed layers see; 0: there are none
  int64_t window_step = 0;  // every n-th layer sees everything; 0: none does

  // --- factors
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;

  // --- mixtures of experts
  int64_t experts = 0, experts_used = 0, expert_feed_forward = 0;

  Pooling pooling = Pooling::none;

  bool is_windowed(int64_t layer) const {
    return window > 0 && (window_step == 0 || (layer + 1) % window_step != 0);
  }
  bool is_rotated(int64_t layer) const {
    return rope_dims > 0 && (unrotated_step == 0 || (layer + 1) % unrotated_step != 0);
  }
};

// What all architectures have in common. Throws kNotFound or kCorruptFile naming the key for what
// is missing or makes no sense.
Config read_config(const GgufFile& file);

// "llama.block_count" of "block_count".
std::string config_key(const GgufFile& file, const char* name);

}  // namespace prism::llm
