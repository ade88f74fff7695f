// Random attention problems with partly poisoned caches and expected results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/attention/attention_kernels.h"

namespace prism::test {

struct AttentionSequence {
  uint32_t queries = 1, keys = 1;
};

struct AttentionCase {
  ops::AttentionOptions options;
  ops::AttentionParams params;
  uint32_t kv_heads = 2, rows = 0, most_queries = 1;
  std::vector<AttentionSequence> sequences;
  // table: with options.block; out: poison, one row more than used.
  std::vector<std::byte> q, k, v, spans, table, mask, sinks, out;
  std::vector<double> expected;  // of the rows in use, [row][head][d]

  uint32_t heads() const { return kv_heads * options.group; }
  // In the order of the kernels' buffers, without the result.
  std::vector<std::vector<std::byte>> inputs(bool with_sinks) const;
};

// positions: the capacity of a cache slot. by_head: [slot][head][position][d], else
// [slot][position][head][d]. With options.block the blocks of all slots are shuffled, and
// neighbouring sequences share their first block.
AttentionCase attention_case(const ops::AttentionOptions& options, uint32_t kv_heads,
                             uint32_t positions, bool by_head,
                             const std::vector<AttentionSequence>& sequences, uint64_t seed);

// Empty if correct within the bound, else one line.
std::string compare(const AttentionCase& one, const std::vector<std::byte>& out, double bound);

}  // namespace prism::test
