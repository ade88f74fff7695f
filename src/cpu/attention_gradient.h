// The gradient of attention on the CPU: recomputes the scores block by block, so that its memory
// grows with the number of keys, not with that of scores.
#pragma once

#include "cpu/attention.h"

namespace prism::cpu {

// One sequence per slot: its queries are rows [slot * queries, (slot + 1) * queries) of q, out and
// out_gradient. The gradients are dense: q's [sequences * queries][heads][dim], k's
// [sequences][keys][kv_heads][dim], v's the same with value_dim.
struct AttentionGradient {
  size_t sequences = 0, queries = 0, keys = 0;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float *out = nullptr, *out_gradient = nullptr;
  size_t gradient_row = 0, gradient_head = 0;  // strides of out_gradient in elements
  float *q_gradient = nullptr, *k_gradient = nullptr, *v_gradient = nullptr;
};

// The largest dim of a head.
inline constexpr size_t kMaxGradientDim = 384;

// options describe the attention that computed out: f32 caches, no table, no mask, sinks, slopes or
// soft cap. Every sum is computed by one thread, so that the result depends on no thread count.
void attention_gradient(ThreadPool& pool, const Attention& options, const AttentionGradient& data);

}  // namespace prism::cpu
