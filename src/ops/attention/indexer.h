// Scores of an indexer: a small attention whose scores choose the keys that the large one sees.
#pragma once

#include "prism/tensor.h"

namespace prism {

// q f32 [rows, heads, dim]; keys [blocks, block, 1, dim] of f32, f16 or bf16, one key for all
// heads, in the blocks that table (i32) [texts, entries] gives; spans as in cached_attention. A row
// at position p of its text scores the keys j <= p; the others are -infinity, and so are all keys
// of rows outside of the spans.
//
// Without head_weights the result is f32 [rows, heads, entries * block]: q.k. With head_weights,
// f32 [rows, heads], it is [rows, entries * block]: the sum over the heads of weight * max(q.k, 0).
// There is no gradient.
Tensor indexer_scores(const Tensor& q, const Tensor& head_weights, const Tensor& keys,
                      const Tensor& spans, const Tensor& table);

// f32 of any shape: 0 for the `count` largest numbers of each row along the last axis, -infinity
// for the others. Of equal numbers at the border, std::partial_sort's choice over their indices is
// taken on every device. There is no gradient.
Tensor mask_of_largest(const Tensor& scores, int64_t count);

}  // namespace prism
