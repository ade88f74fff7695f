// Attention on the CPU: softmax(q k^T) v without materialising the scores, for f32, f16, bf16 or
// q8_0 caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/system/thread_pool.h"
#include "prism/element_type.h"

namespace prism::cpu {

// The newest `queries` tokens of a sequence of `keys` tokens; they are the last of them. Their rows
// in q and out start at first_row; keys and values are in slot `slot` of the cache, or in the
// blocks of row `slot` of its table.
struct AttentionSpan {
  uint32_t first_row = 0, queries = 0, keys = 0, slot = 0;
};

// Scores are scale * q.k, then soft_cap * tanh(score / soft_cap), then + mask and - slope *
// distance in positions. A query at position p sees keys j <= p (causal) with j + window > p
// (window; if not causal, also j < p + window), or only those of its chunk of `window` positions
// (chunked). A sink is an additional score per head that only enters the denominator. A query that
// sees no key gives zeros.
struct Attention {
  size_t heads = 0, kv_heads = 0;  // heads is a multiple of kv_heads
  size_t dim = 0;                  // of queries and keys; q8_0: a multiple of 32
  size_t value_dim = 0;            // of values and results
  float scale = 1;
  bool causal = true;
  size_t window = 0;  // 0: none
  bool chunked = false;
  float soft_cap = 0;  // 0: none

  size_t q_row = 0, q_head = 0, out_row = 0, out_head = 0;  // strides in elements
  ElementType cache = DType::f16;  // type of k and v: f32, f16, bf16 or q8_0 in file layout
  struct Strides {
    size_t slot = 0, position = 0, head = 0;  // in bytes
  };
  Strides k = {}, v = {};
  // If not null: position p of a sequence is position p % block of the slot
  // table[slot * table_row + p / block].
  const int32_t* table = nullptr;
  size_t table_row = 0, block = 0;
  // Indexed by row * mask_row + head * mask_head + key; may be null.
  const float* mask = nullptr;
  size_t mask_row = 0, mask_head = 0;
  const float* sinks = nullptr;   // one per head; may be null
  const float* slopes = nullptr;  // one per head; may be null
};

// Memory of the calling thread, kept between calls and overwritten by the next one. Throws
// kOutOfMemory.
float* attention_scratch(size_t elements);

struct KeyRange {
  size_t first, last;
};
// The keys that are visible to a query of a span.
KeyRange seen_keys(const Attention& options, const AttentionSpan& span, size_t query);

// Throws Error for an unsupported cache type, or for heads and dims that do not fit.
void attention(ThreadPool& pool, const Attention& options, const float* q, const void* k,
               const void* v, const AttentionSpan* spans, size_t sequences, float* out);

}  // namespace prism::cpu
