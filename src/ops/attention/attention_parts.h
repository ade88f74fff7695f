// What the attention kernels share: their arguments, the cache as vectors of f32, masking, fast
// exponentials. For .cpp files of attention only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/attention/attention_kernels.h"
#include "prism/kernel.h"

namespace prism::ops {

// Scores are kept in units of log2: exp2 is what devices have.
inline constexpr float kLog2E = 1.4426950408889634f;
// A score that gives no weight, and a maximum that is above it: no infinities, no NaN.
inline constexpr float kHidden = -1e30f, kNoMaximum = -5e29f;

void check_options(const AttentionOptions& options, const char* kernel);
std::string option_name(const AttentionOptions& options);  // "d128_g4_f16_causal", for kernel names

// 2^x for x <= 0 or so; within 2^-22 of it, small results may be zero.
dsl::Value fast_exp2(dsl::Value x);
// The larger; neither is NaN.
dsl::Value fast_max(dsl::Value a, dsl::Value b);

// The arguments of a kernel that is being built; declared by the constructor in the documented
// order.
struct AttentionArguments {
  // What the kernel makes: the result from keys, partial results of splits, the result from those,
  // or both one after the other.
  enum class Result { out, partial, merged, both };
  AttentionArguments(const AttentionOptions& options, Result result);

  const AttentionOptions& options;
  std::optional<dsl::In> q, k, v, spans, mask, sinks;
  std::optional<dsl::Array> partial, out, counters;
  std::optional<dsl::Value> splits;
  std::optional<dsl::Value> q_row, q_head, out_row, out_head, kv_slot, kv_position, kv_head,
      factor_offset, factor_head, scale, window, soft_cap, mask_row;

  // By what q is multiplied, so that scores come out in units of log2 (or, with a soft cap, as
  // shares of it).
  dsl::Value q_factor() const;
  // A product of the multiplied q and a key, capped and masked. row: of mask.
  dsl::Value score(dsl::Value product, dsl::Value row, dsl::Value position) const;
  // Four elements of a row of q in f32, from d on: zeros where not wanted and beyond the head.
  std::vector<dsl::Value> four_of_q(dsl::Value wanted, dsl::Value row, dsl::Value head,
                                    dsl::Value d) const;
  // Stores an element of the result, 0 <= d < head_dim; rounded, all lanes of the group arrive,
  // each with the element beside that of the lane before.
  void store(dsl::Value wanted, dsl::Value row, dsl::Value head, dsl::Value d,
             dsl::Value value) const;
  // Whether the query at a position sees the key; beside key < keys.
  dsl::Value sees(dsl::Value query_position, dsl::Value key) const;
};

// The sequence of a group.
struct Span {
  dsl::Value first_row, queries, keys, slot;
  Span(const dsl::In& spans, dsl::Value sequence);
  explicit Span(dsl::Value four);
  // Of a query of the sequence, among its keys.
  dsl::Value position(dsl::Value query) const { return keys - queries + query; }
};

// One head of k or v as chunks of 16 bytes, the last filled up with zeros.
class CacheHead {
 public:
  CacheHead(const AttentionArguments& arguments, const dsl::In& cache, dsl::Value slot,
            dsl::Value head);
  static uint32_t chunk_elements(const AttentionOptions& options);
  static uint32_t chunks(const AttentionOptions& options);
  // Whether chunks lie in memory as they are: 16 bytes, aligned.
  static bool whole_chunks(const AttentionOptions& options);

  // A chunk as it lies in memory, zeros where not wanted; loaded early, unpacked late.
  struct Chunk {
    std::vector<dsl::Value> words;     // 4 of u32, or
    std::vector<dsl::Value> elements;  // f32, where heads are no whole words
    std::optional<dsl::Value> factor;  // q8_0: f32
  };
  Chunk load(dsl::Value wanted, dsl::Value position, dsl::Value chunk) const;
  // The elements; q8_0: without the factor.
  std::vector<dsl::Value> unpack(const Chunk& chunk) const;
  // q8_0: the elements times the factor, exactly; for devices that round fma once.
  std::vector<dsl::Value> unpack_times_factor(const Chunk& chunk) const;
  // Index of the first element of a position, for copies of f16 caches.
  dsl::Value element(dsl::Value position) const;

 private:
  const AttentionArguments& arguments_;
  const dsl::In& cache_;
  dsl::Value base_;
  std::optional<dsl::Value> factor_base_;
};

}  // namespace prism::ops
