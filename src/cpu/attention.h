// Attention on the CPU: softmax(q k^T) v without a matrix of scores, over caches of f32, f16, bf16
// or q8_0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/system/thread_pool.h"
#include "prism/element_type.h"

namespace prism::cpu {

// The newest `queries` tokens of a sequence of `keys` tokens; they are the last of them. Rows of q
// and out are first_row and on; keys and values lie in slot `slot` of the cache.
struct AttentionSpan {
  uint32_t first_row = 0, queries = 0, keys = 0, slot = 0;
};

// Scores are scale * q.k, then soft_cap * tanh(score / soft_cap), then + mask. A query at position
// p sees keys j <= p (causal), of them those with j + window > p (window). A sink is one more score
// of the head, in the denominator only. A query that sees no key gives zeros.
struct Attention {
  size_t heads = 0, kv_heads = 0;  // heads is a multiple of kv_heads
  size_t dim = 0;                  // of a head; q8_0: a multiple of 32
  float scale = 1;
  bool causal = true;
  size_t window = 0;   // 0: none
  float soft_cap = 0;  // 0: none

  size_t q_row = 0, q_head = 0, out_row = 0, out_head = 0;  // strides in elements
  ElementType cache = DType::f16;  // of k and v: f32, f16, bf16 or q8_0 as files hold it
  size_t kv_slot = 0, kv_position = 0, kv_head = 0;  // strides in bytes
  const float* mask = nullptr;  // row * mask_row + key, the same for all heads; null for none
  size_t mask_row = 0;
  const float* sinks = nullptr;  // one for each head; null for none
};

// Throws Error for a cache of another type, or heads and dims that do not fit.
void attention(ThreadPool& pool, const Attention& options, const float* q, const void* k,
               const void* v, const AttentionSpan* spans, size_t sequences, float* out);

}  // namespace prism::cpu
