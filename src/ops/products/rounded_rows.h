// Activations rounded to 8-bit integers in a buffer, written by a separate launch or by their
// producer and read by products of few rows with block weights.
//
// A row of k elements (a multiple of 32) takes 3 k / 8 words. With block b = e / 32 and half h = e
// / 16 % 2 of element e, its byte is byte e % 4 of word h * k / 8 + 4 b + e % 16 / 4. Word k / 4
// starts four floats per block: its scale, and scale * the sum of all 32 bytes, of the first 16,
// and of the last 16.
//
// An unscaled row of a norm (tensor/plan/unscaled_rows.h) is x * weight in that layout, with k a
// multiple of 128, followed by k / 32 floats: the sum of x^2 of each block.
#pragma once

#include <optional>
#include <vector>

#include "prism/kernel.h"

namespace prism::ops {

// The word at which a row of k elements starts.
dsl::Value rounded_start(dsl::Value row, dsl::Value k);

// Rounds and stores four adjacent f32 elements per lane: number `quad` of the fours of a row of k
// elements that starts at word `start`. All lanes of the group must call it; eight neighbouring
// lanes hold one block and have the same `wanted`.
void store_rounded(const dsl::Array& y, dsl::Value wanted, dsl::Value start, dsl::Value k,
                   dsl::Value quad, dsl::Value four);

// The same with one element per lane: a subgroup of 32 lanes holds a block.
void store_rounded_element(const dsl::Array& y, dsl::Value wanted, dsl::Value start, dsl::Value k,
                           dsl::Value element, dsl::Value value);

// The activations of one unit of block weights (weight_units.h).
struct RoundedUnit {
  std::vector<dsl::Value> quads;
  dsl::Value scale;
  std::vector<dsl::Value> sums;  // of each part; empty if parts is 0
};

// Loads unit number `unit`, of 16 or 32 elements, of the row that starts at word `start`. parts:
// the number of sums, or 0.
RoundedUnit load_rounded(const dsl::In& x, dsl::Value start, dsl::Value k, dsl::Value unit,
                         uint32_t elements, uint32_t parts);

}  // namespace prism::ops
