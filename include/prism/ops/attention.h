// Attention: softmax(q k^T) v, over whole tensors and over caches whose lengths are device data.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// Scores are scale * q.k, then soft_cap * tanh(score / soft_cap), then + mask. A query at position
// p sees keys j <= p (causal; the queries are the last of the keys), of them those with
// j + window > p. A sink is one more score of its head, in the denominator only. A query that sees
// no key gives zeros.
struct AttentionSettings {
  double scale = 0;  // 0: one over the root of the dimension
  bool causal = true;
  int64_t window = 0;   // 0: none
  double soft_cap = 0;  // 0: none
  Tensor mask = {};     // f32 [queries (rows), keys], the same for all heads
  Tensor sinks = {};    // f32 [heads]
};

// q [batch, heads, queries, dim], k and v [batch, kv_heads, keys, dim], heads a multiple of
// kv_heads: [batch, heads, queries, dim]. No matrix of scores is ever in memory, unless gradients
// are asked for.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionSettings& settings = {});

// Over a cache. q [rows, heads, dim]; k and v [slots, positions, kv_heads, dim] (f32, f16, bf16 or
// q8_0), of which only the keys of each sequence are read. spans (i32) [sequences, 4]:
// the first row in q, the number of queries, the number of keys (with the queries' own), the slot.
// most_queries: of any sequence, whatever the spans will hold. Result: [rows, heads, dim]; rows in
// no span are unspecified.
Tensor cached_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& spans,
                        int64_t most_queries, const AttentionSettings& settings = {});

// Up to so many queries of a sequence some device reads the keys in splits and joins partial
// results.
inline constexpr int64_t kMostSplitQueries = 15;
// Memory that the work of cached_attention takes beside its result, at most: partial results of few
// queries, for any number of them up to most_queries of one sequence.
uint64_t cached_attention_work_bytes(const DeviceInfo& device, int64_t heads, int64_t kv_heads,
                                     int64_t dim, ElementType cache, int64_t most_queries);

}  // namespace prism

#pragma GCC visibility pop
