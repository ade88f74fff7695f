// Nearest rows of a matrix: scores and selection in one step, without the matrix of scores.
//
//   Tensor rows = randn({1000, 64}), query = randn({64});
//   Nearest best = cosine_top_k(query, rows, 10);
//   std::vector<int32_t> ids = best.indices.to_vector<int32_t>();
#pragma once

#include <cstdint>

#include "prism/metric.h"
#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// The best rows first; equal scores in the order of the rows. Slots without a row (fewer rows than
// k qualify) have index -1 and the score -infinity, or +infinity for distances.
struct Nearest {
  Tensor scores;   // f32 [k], or [queries, k]: similarities or distances
  Tensor indices;  // i32, like scores
};

// Further inputs, on the device of the matrix. An empty tensor leaves one out.
struct NearestInputs {
  Tensor norms = {};    // f32 [rows]: the lengths of the rows, for cosine
  Tensor scales = {};   // f32 [rows]: the factor of each row of i8, for dot and l2
  Tensor allowed = {};  // i32 [(rows + 31) / 32]: row r may be returned if bit r % 32 of element
                        // r / 32 is set
  // i32 [blocks, 2]: queries 4 b to 4 b + 3 are compared with the rows from element [b, 0] up to
  // element [b, 1] only. Rows of a range are read once for the four. longest_span: at least the
  // rows of the longest range.
  Tensor spans = {};
  int64_t longest_span = 0;
};

inline constexpr int64_t kMaximumNearest = 2048;
inline constexpr int64_t kSpanQueries = 4;  // that share a range of NearestInputs::spans

// The k best rows of matrix [rows, width] for query [width], or for each row of query [queries,
// width]. Queries are f32, f16 or bf16; the matrix is f32, f16, bf16 or i8. For hamming both are u8
// with eight bits in each element. k is at most kMaximumNearest. The candidates of f32 sums are
// scored again with more precision, so that every device gives the same rows in the same order
// where exact scores differ by more than 1e-6 of their size.
//
// A row whose score is NaN or infinitely bad is never returned. A zero row has cosine 0. A zero
// query has no cosine: it gets no rows. Throws kInvalidArgument if types or shapes do not fit.
Nearest nearest_rows(Metric metric, const Tensor& query, const Tensor& matrix, int64_t k,
                     const NearestInputs& inputs = {});

Nearest cosine_top_k(const Tensor& query, const Tensor& matrix, int64_t k);
Nearest cosine_top_k(const Tensor& query, const Tensor& matrix, const Tensor& norms, int64_t k);
Nearest dot_top_k(const Tensor& query, const Tensor& matrix, int64_t k);
Nearest l2_top_k(const Tensor& query, const Tensor& matrix, int64_t k);
Nearest hamming_top_k(const Tensor& query, const Tensor& matrix, int64_t k);

// f32 [rows]: the lengths of the rows of a matrix, for cosine_top_k.
Tensor row_norms(const Tensor& matrix);

}  // namespace prism

#pragma GCC visibility pop
