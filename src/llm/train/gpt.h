// A trainable GPT of the architecture that model files call `llama`: RMS norms, rotary positions,
// grouped heads and a gated feed-forward block.
//
//   Gpt model({.vocabulary = 512, .context = 64, .layers = 2, .width = 64, .heads = 4});
//   Tensor loss = nn::cross_entropy(model(batch[0]), batch[1]);
#pragma once

#include <cstdint>
#include <vector>

#include "prism/nn/layers.h"

namespace prism::llm {

struct GptShape {
  int64_t vocabulary = 0, context = 0, layers = 0, width = 0, heads = 0;
  int64_t kv_heads = 0;      // 0: as many as heads
  int64_t feed_forward = 0;  // 0: 8/3 of the width, rounded up to a multiple of 32
  bool tied = true;          // the output is the token embedding
  double dropout = 0;
  double rope_base = 10000, norm_epsilon = 1e-5;
};

// Fills in what is 0. Throws kInvalidArgument for sizes that make no model, or one with more than
// 2^40 parameters.
GptShape checked_shape(GptShape shape);
int64_t parameter_count(const GptShape& shape);

struct GptBlock : nn::Module {
  GptBlock(const GptShape& shape, const Device& device);
  Tensor operator()(const Tensor& x);

  nn::RMSNorm attention_norm;
  nn::SelfAttention attention;
  nn::RMSNorm feed_forward_norm;
  nn::Linear gate, up, down;
  nn::Dropout dropout;
  PRISM_MEMBERS(attention_norm, attention, feed_forward_norm, gate, up, down, dropout)
};

class Gpt : public nn::Module {
 public:
  // Weights are drawn as GPT-2's: normal with a deviation of 0.02, less for those that add to the
  // residual stream.
  explicit Gpt(const GptShape& shape, const Device& device = {});
  // ids (i32) [batch, length] to logits [batch, length, vocabulary].
  Tensor operator()(const Tensor& ids);
  // The mean cross-entropy of the logits, some of them at a time if there are many.
  Tensor loss(const Tensor& ids, const Tensor& targets);
  const GptShape& shape() const { return shape_; }
  // Layers are computed again for the gradient; see recompute().
  void set_recompute(bool on) { recompute_ = on; }
  PRISM_MEMBERS(tokens, dropout, blocks, norm, output)

 private:
  Tensor hidden(const Tensor& ids);

  GptShape shape_;
  bool recompute_ = false;

 public:
  nn::Embedding tokens;
  nn::Dropout dropout;
  std::vector<GptBlock> blocks;
  nn::RMSNorm norm;
  nn::Linear output;
};

}  // namespace prism::llm
