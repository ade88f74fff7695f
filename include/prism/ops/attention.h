// Attention: softmax(q k^T) v, over whole tensors and over caches with lengths in device memory.
#pragma once

#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// Scores are scale * q.k, then soft_cap * tanh(score / soft_cap), then + mask, then - slope *
// |p - j| for the key j and the query at position p. If causal, the queries are at the last
// positions, and a query at position p sees keys j <= p. A window limits the keys to j + window > p
// and, if not causal, to j < p + window; if chunked, to those with j / window == p / window
// (rounded down). A sink adds a score to the softmax denominator of its head. A query without
// visible keys gives zeros.
struct AttentionSettings {
  double scale = 0;  // 0: 1 / sqrt(dim)
  bool causal = true;
  int64_t window = 0;  // 0: none
  bool chunked = false;
  double soft_cap = 0;  // 0: none
  // Linear biases (ALiBi): the first 2^n heads, the largest power of two, have the slopes
  // 2^(-max_bias (h + 1) / 2^n), the others those between: 2^(-max_bias (h + 1/2) / 2^n). 0: none.
  double max_bias = 0;
  int64_t value_dim = 0;  // only the first elements of a value are used; 0: all
  Tensor mask = {};       // f32 [queries (rows), keys] for all heads, or [queries, heads, keys]
  Tensor sinks = {};      // f32 [heads]
  Tensor table = {};      // cached_attention only: i32 [texts, blocks], see there
};

// q [batch, heads, queries, dim], k [batch, kv_heads, keys, dim], v the same with a dim of at most
// that, heads a multiple of kv_heads. Result: [batch, heads, queries, dim of v]. The score matrix
// is stored only if gradients are required, and not for f32 on the CPU without mask, sinks, soft
// cap and linear biases: there memory is linear in the length, with gradients too.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionSettings& settings = {});

// Attention over a cache. q [rows, heads, dim]; k and v [slots, positions, kv_heads, dim] (f32,
// f16, bf16 or q8_0), read only where a sequence has keys. Values may be shorter than keys, or the
// first value_dim elements of the keys themselves: v is then the tensor k. spans (i32) [sequences,
// 4]: the first row in q, the number of queries, the number of keys (including those of the
// queries, unless it does not matter where these are: neither causal, nor with a window or biases),
// the slot. most_queries: the largest number of queries in any span. Result: [rows,
// heads, dim of v]; rows outside all spans are unspecified.
//
// With settings.table the cache is paged: k and v are [blocks, block, kv_heads, dim] with `block` a
// power of two, the last number of a span is a row of the table, and position p of that text is
// position p % block of block table[row][p / block]. Entries of positions that no query sees are
// not used.
Tensor cached_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& spans,
                        int64_t most_queries, const AttentionSettings& settings = {});

// Up to this many queries per sequence, some devices split the keys and combine partial results.
inline constexpr int64_t kMostSplitQueries = 15;
// The most scratch memory of cached_attention, for up to most_queries queries per sequence.
uint64_t cached_attention_work_bytes(const DeviceInfo& device, int64_t heads, int64_t kv_heads,
                                     int64_t dim, ElementType cache, int64_t most_queries);
// The slopes of linear biases by head: see AttentionSettings::max_bias.
std::vector<float> bias_slopes(double max_bias, int64_t heads);

}  // namespace prism

#pragma GCC visibility pop
