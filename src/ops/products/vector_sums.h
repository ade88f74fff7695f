// The accumulation of few-row products: their operands, and the loop over the weights.
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

// The buffers and params of one product.
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
  size_t number = 0;                        // index of this product in the launch
  std::optional<dsl::Value> x_from = {};    // the first element of x; none: 0
  std::optional<dsl::In> norm_weight = {};  // norm weight of the unscaled rows written to `rows`
  std::optional<dsl::Array> rows = {};

  bool rotates() const { return cache && cache->rotates(number); }
};

// The scale of a norm, for rows that are unscaled.
class RowScales {
 public:
  explicit RowScales(const VectorProduct& p);
  // Prefetches the first sums of squares of this lane.
  void ask(const dsl::In& x, dsl::Value k);
  // The factor for all results, uniform in the group.
  std::optional<dsl::Value> scale(const dsl::In& x, dsl::Value k);

 private:
  std::optional<float> epsilon_;
  std::vector<dsl::Var> squares_;
};

// The number of sums per lane.
uint32_t sums_of(const VectorProduct& p);
std::vector<dsl::Var> zero_sums(uint32_t count);

// The first weight row of a subgroup; group: index among the groups of this product.
dsl::Value first_row_of(const VectorProduct& p, dsl::Value group);

// Whether the expert exists, for routed products.
std::optional<dsl::Value> expert_is_known(const Operands& o);

// Adds this lane's share to sums[stream * x_rows + i], which must be zero. after_turn: called at
// the end of each turn with the sums of that turn.
void add_up(const VectorProduct& p, const Operands& o, dsl::Value group,
            std::vector<dsl::Var>& sums, RowScales& scales,
            const std::function<void(dsl::Value turn)>& after_turn = {});

}  // namespace prism::ops
