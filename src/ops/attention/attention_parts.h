// Building blocks of the attention kernels: arguments, cache reads, masking and fast exponentials.
// Private to attention.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/attention/attention_kernels.h"
#include "prism/kernel.h"

namespace prism::ops {

// Scores are in units of log2, because devices have exp2.
inline constexpr float kLog2E = 1.4426950408889634f;
// A score with zero weight, and an initial maximum above it: avoids infinities and NaN.
inline constexpr float kHidden = -1e30f, kNoMaximum = -5e29f;

void check_options(const AttentionOptions& options, const char* kernel);
std::string option_name(const AttentionOptions& options);  // "d128_g4_f16_causal", for kernel names

// 2^x for x <= 0, accurate to 2^-22; small results may flush to zero.
dsl::Value fast_exp2(dsl::Value x);
// The maximum; neither argument may be NaN.
dsl::Value fast_max(dsl::Value a, dsl::Value b);

// The arguments of the kernel under construction; the constructor declares them in the documented
// order.
struct AttentionArguments {
  // What the kernel writes: the result, partial results of splits, the merged partial results, or
  // partial results and then the merged result.
  enum class Result { out, partial, merged, both };
  AttentionArguments(const AttentionOptions& options, Result result);

  const AttentionOptions& options;
  std::optional<dsl::In> q, k, v, spans, mask, sinks;
  std::optional<dsl::Array> partial, out, counters;
  std::optional<dsl::Value> splits;
  std::optional<dsl::Value> q_row, q_head, out_row, out_head, kv_slot, kv_position, kv_head,
      factor_offset, factor_head, scale, window, soft_cap, mask_row;

  // The factor on q that gives scores in units of log2 (with a soft cap: in units of the cap).
  dsl::Value q_factor() const;
  // Caps and masks the product of the scaled q and a key. row: row of the mask.
  dsl::Value score(dsl::Value product, dsl::Value row, dsl::Value position) const;
  // Loads four elements of q from d on as f32; zeros if not wanted and beyond the head.
  std::vector<dsl::Value> four_of_q(dsl::Value wanted, dsl::Value row, dsl::Value head,
                                    dsl::Value d) const;
  // Stores an element of the result, 0 <= d < head_dim. If rounded, all lanes of the group must
  // call it, with consecutive elements in consecutive lanes.
  void store(dsl::Value wanted, dsl::Value row, dsl::Value head, dsl::Value d,
             dsl::Value value) const;
  // Whether the query at a position sees the key; the caller checks key < keys.
  dsl::Value sees(dsl::Value query_position, dsl::Value key) const;
};

// The sequence that a group processes.
struct Span {
  dsl::Value first_row, queries, keys, slot;
  Span(const dsl::In& spans, dsl::Value sequence);
  explicit Span(dsl::Value four);
  // The position of a query among the keys.
  dsl::Value position(dsl::Value query) const { return keys - queries + query; }
};

// One head of k or v as 16-byte chunks; the last is zero-padded.
class CacheHead {
 public:
  CacheHead(const AttentionArguments& arguments, const dsl::In& cache, dsl::Value slot,
            dsl::Value head);
  static uint32_t chunk_elements(const AttentionOptions& options);
  static uint32_t chunks(const AttentionOptions& options);
  // Whether all chunks are 16 aligned bytes of memory.
  static bool whole_chunks(const AttentionOptions& options);

  // A raw chunk, zeros if not wanted: loaded early, unpacked late.
  struct Chunk {
    std::vector<dsl::Value> words;     // 4 x u32, or
    std::vector<dsl::Value> elements;  // f32, if a head is not a whole number of words
    std::optional<dsl::Value> factor;  // q8_0: f32
  };
  Chunk load(dsl::Value wanted, dsl::Value position, dsl::Value chunk) const;
  // The elements; for q8_0 without the factor.
  std::vector<dsl::Value> unpack(const Chunk& chunk) const;
  // q8_0: the elements times the factor, exact if the device rounds fma once.
  std::vector<dsl::Value> unpack_times_factor(const Chunk& chunk) const;
  // Index of the first element at a position, for async copies of f16 caches.
  dsl::Value element(dsl::Value position) const;

 private:
  const AttentionArguments& arguments_;
  const dsl::In& cache_;
  dsl::Value base_;
  std::optional<dsl::Value> factor_base_;
};

}  // namespace prism::ops
