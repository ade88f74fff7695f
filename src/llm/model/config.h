// The hyperparameters of a model, read from the metadata of its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"
#include "prism/ops/rope.h"
#include "prism/rope_scaling.h"

namespace prism::llm {

enum class Pooling : uint8_t { none, mean, first, last };  // how rows become one embedding

struct Config {
  std::string architecture;  // "llama"
  std::string name;          // display name; may be empty
  int64_t layers = 0;
  int64_t width = 0;  // size of the hidden state
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;  // context length the model was trained for
  double norm_epsilon = 1e-5;

  // --- positions
  RopePairing pairing = RopePairing::halves;
  int64_t rope_dims = 0;  // rotated elements per head; 0: no rotation
  double rope_base = 10000;
  double local_rope_base = 0;  // for windowed layers, unscaled; 0: rope_base
  RopeScaling rope_scaling;
  double rope_magnitude = 0;   // 0: determined by the scaling
  int64_t unrotated_step = 0;  // every n-th layer is not rotated; 0: all are

  // --- attention
  bool causal = true;
  double attention_scale = 0;  // 0: 1 / sqrt(head_dim)
  double attention_soft_cap = 0, logit_soft_cap = 0;
  int64_t window = 0;       // keys visible to windowed layers; 0: no windowed layers
  int64_t window_step = 0;  // every n-th layer has full attention; 0: none has

  // --- scale factors
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;

  // --- mixture of experts
  int64_t experts = 0, experts_used = 0, expert_feed_forward = 0;

  Pooling pooling = Pooling::none;

  bool is_windowed(int64_t layer) const {
    return window > 0 && (window_step == 0 || (layer + 1) % window_step != 0);
  }
  bool is_rotated(int64_t layer) const {
    return rope_dims > 0 && (unrotated_step == 0 || (layer + 1) % unrotated_step != 0);
  }
};

// Reads the hyperparameters common to all architectures. Throws kNotFound or kCorruptFile naming
// the key if a value is missing or invalid.
Config read_config(const GgufFile& file);

// The key with the architecture's prefix: "llama.block_count" for "block_count".
std::string config_key(const GgufFile& file, const char* name);

}  // namespace prism::llm
