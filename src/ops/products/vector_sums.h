// What lanes add up in products of few rows: what a product works on, and the loop over its
// weights.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/products/cache_tail.h"
#include "ops/products/product_kernels.h"
#include "ops/products/weight_units.h"
#include "ops/tail.h"
#include "prism/kernel.h"

namespace prism::ops {

// What one product works on: its buffers and params.
struct Operands {
  std::vector<dsl::In> matrices;  // gate and up, or one
  dsl::In x;
  std::optional<dsl::In> ids;
  TailCode tail;
  dsl::Array y;
  dsl::Value n, k, row_count, x_stride, y_stride;
  std::optional<dsl::Value> experts;
  WeightParams layout;
  CacheTail* cache = nullptr;               // null: results go to y
  size_t number = 0;                        // of the products that it has
  std::optional<dsl::In> norm_weight = {};  // of rows without their scale, which go to
  std::optional<dsl::Array> rows = {};

  bool rotates() const { return cache && cache->rotates(number); }
};

// The scale of a norm that its rows came without.
class RowScales {
 public:
  explicit RowScales(const VectorProduct& p);
  // The first sums of squares of this lane, asked for early.
  void ask(const dsl::In& x, dsl::Value k);
  // What all results are multiplied by, for the whole group.
  std::optional<dsl::Value> scale(const dsl::In& x, dsl::Value k);

 private:
  std::optional<float> epsilon_;
  std::vector<dsl::Var> squares_;
};

// How many sums a lane has.
uint32_t sums_of(const VectorProduct& p);
std::vector<dsl::Var> zero_sums(uint32_t count);

// The first weight row of a subgroup; group: of those that this product has.
dsl::Value first_row_of(const VectorProduct& p, dsl::Value group);

// Whether the expert exists, where it is one.
std::optional<dsl::Value> expert_is_known(const Operands& o);

// sums[stream * x_rows + i], the share of this lane; they are zero before. after_turn: called when
// they are those of a turn, in each.
void add_up(const VectorProduct& p, const Operands& o, dsl::Value group,
            std::vector<dsl::Var>& sums, RowScales& scales,
            const std::function<void(dsl::Value turn)>& after_turn = {});

}  // namespace prism::ops
