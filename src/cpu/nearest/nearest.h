// Exact nearest rows: scores in f32 by tiles that stay in the cache, a few candidates per query
// kept on the way, and the candidates scored again in f64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/system/thread_pool.h"
#include "prism/dtype.h"
#include "prism/metric.h"

namespace prism::cpu {

// A matrix of rows in host memory. Rows are f32, f16, bf16 or i8; for hamming u8, eight bits each.
struct NearestRows {
  Metric metric = Metric::cosine;
  DType type = DType::f32;
  const std::byte* data = nullptr;
  uint64_t count = 0;
  uint64_t width = 0;                 // elements per row
  const float* norms = nullptr;       // cosine: the lengths of the stored rows; null: computed
  const float* scales = nullptr;      // the factor of each row (i8); null: 1. Ignored for cosine
  const uint32_t* allowed = nullptr;  // bit r % 32 of word r / 32; null: every row

  const std::byte* row(uint64_t r) const { return data + r * width * dtype_bytes(type); }
  bool allows(uint64_t r) const { return !allowed || (allowed[r / 32] >> (r % 32) & 1) != 0; }
};

// A row and its score. `row` is kNoRow where fewer than k rows qualify.
struct NearRow {
  static constexpr uint64_t kNoRow = ~uint64_t{0};
  uint64_t row = kNoRow;
  float score = 0;  // similarity or distance

  bool is_row() const { return row != kNoRow; }
};

// Whether a comes before b: by score, then by row.
inline bool comes_before(Metric metric, const NearRow& a, const NearRow& b) {
  if (a.is_row() != b.is_row()) return a.is_row();
  if (a.score != b.score) return is_distance(metric) ? a.score < b.score : a.score > b.score;
  return a.row < b.row;
}

// The k best rows of each query, best first, [queries][k]. Queries are f32 [queries][width], u8 for
// hamming. Rows whose score is NaN and rows that are not allowed are never returned; a zero row has
// cosine 0; a zero query has no cosine and gets no rows.
std::vector<NearRow> nearest(ThreadPool& pool, const NearestRows& rows, const void* queries,
                             uint64_t query_count, uint64_t k);

// All rows at least as good as `bound` (a similarity or a distance), best first.
std::vector<NearRow> nearest_within(ThreadPool& pool, const NearestRows& rows, const void* query,
                                    float bound);

// Rows of a matrix that only some of the queries are compared with.
struct RowRange {
  uint64_t begin = 0, end = 0;
  std::vector<uint32_t> queries;
};
// Like nearest(), over the ranges only. No row may be in two ranges with the same query.
std::vector<NearRow> nearest_in(ThreadPool& pool, const NearestRows& rows, const void* queries,
                                uint64_t query_count, uint64_t k,
                                const std::vector<RowRange>& ranges);

// The rows with their exact scores, best first; rows without a score are dropped.
std::vector<NearRow> rank_rows(const NearestRows& rows, const void* query,
                               const std::vector<uint64_t>& candidates);

// The score of one row, computed in f64 and rounded once; NaN if there is none.
float exact_score(const NearestRows& rows, const void* query, uint64_t row);

}  // namespace prism::cpu
