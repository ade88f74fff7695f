// Activations rounded to 8-bit integers in a buffer, by a launch of their own or by the kernel that
// makes them: what products of few rows and block weights read.
//
// A row of k elements (a multiple of 32) takes 3 k / 8 words. With block b = e / 32 and half h = e
// / 16 % 2 of element e: its byte is byte e % 4 of word h * k / 8 + 4 b + e % 16 / 4. From word k /
// 4 on stand four floats for each block: its scale, scale * the sum of all 32 bytes, of the first
// 16, and of the other 16.
//
// A row that a norm would scale (tensor/plan/unscaled_rows.h) is x * weight in that layout, k a
// multiple of 128, and after it stand k / 32 floats: the sum of x^2 of each block.
#pragma once

#include <optional>
#include <vector>

#include "prism/kernel.h"

namespace prism::ops {

// The word at which a row of k elements starts.
dsl::Value rounded_start(dsl::Value row, dsl::Value k);

// Rounds and stores four neighbours that each lane holds in f32: number `quad` of the fours of a
// row of k elements that starts at word `start`. Every lane of the group arrives; eight lanes side
// by side hold one block, and want it stored together.
void store_rounded(const dsl::Array& y, dsl::Value wanted, dsl::Value start, dsl::Value k,
                   dsl::Value quad, dsl::Value four);

// The same of one element a lane: a subgroup of 32 lanes holds a block.
void store_rounded_element(const dsl::Array& y, dsl::Value wanted, dsl::Value start, dsl::Value k,
                           dsl::Value element, dsl::Value value);

// The activations of one unit of block weights (weight_units.h).
struct RoundedUnit {
  std::vector<dsl::Value> quads;
  dsl::Value scale;
  std::vector<dsl::Value> sums;  // of each part; empty where none are wanted
};

// Unit number `unit`, of 16 or 32 elements, of the row that starts at word `start`. parts: how many
// sums; 0 for none.
RoundedUnit load_rounded(const dsl::In& x, dsl::Value start, dsl::Value k, dsl::Value unit,
                         uint32_t elements, uint32_t parts);

}  // namespace prism::ops
