// Arguments and visible ranges of the kernels of attention's gradient. Private to attention.
#pragma once

#include <optional>
#include <string>

#include "ops/attention/attention_gradient_kernels.h"
#include "prism/kernel.h"

namespace prism::ops {

// The rows of one head of an input.
struct GradientRows {
  dsl::In from;
  dsl::Value first, step, count;  // elements, elements, rows
  uint32_t dim;
  dsl::Value element(dsl::Value row) const { return first + row * step; }
};

// Queries or keys with what belongs to them: queries and the slopes of results, or keys and values.
struct GradientPair {
  GradientRows one, two;
};

// Rows [first, end).
struct GradientRange {
  dsl::Value first, end;
  dsl::Value tiles(uint32_t rows) const {
    return dsl::select(end > first, (end - first + (rows - 1)) / rows, 0u);
  }
};

// The arguments of the kernel under construction, declared in the documented order.
struct GradientArguments {
  GradientArguments(const AttentionGradientOptions& options, GradientSide own);

  const AttentionGradientOptions& options;
  const GradientSide own;
  dsl::In q, k, v, slopes, sums, products;
  dsl::Array first;                  // slopes of queries or of keys
  std::optional<dsl::Array> second;  // slopes of values
  dsl::Value q_row, q_head, slopes_row, slopes_head, k_slot, k_position, k_head, v_slot, v_position,
      v_head, queries, keys, scale;
  std::optional<dsl::Value> window;

  GradientPair queries_of(dsl::Value sequence, dsl::Value head) const;
  GradientPair keys_of(dsl::Value sequence, dsl::Value kv_head) const;
  // The place of a query in sums and products. heads: of all queries.
  dsl::Value place(dsl::Value sequence, dsl::Value query, dsl::Value head, dsl::Value heads) const {
    return (sequence * queries + query) * heads + head;
  }
  dsl::Value own_count() const { return own == GradientSide::keys ? keys : queries; }
  // The other rows that own rows [first, first + count) may see.
  GradientRange seen_by(dsl::Value first_own, uint32_t count) const;
  // Whether a query sees a key; both exist.
  dsl::Value sees(dsl::Value query, dsl::Value key) const;
  // Whether a row of a tile may not see another; tiles of own and other rows.
  dsl::Value hides(dsl::Value first_own, uint32_t own_rows, dsl::Value first_other,
                   uint32_t other_rows) const;
};

std::string gradient_name(const AttentionGradientOptions& options, GradientSide own);

}  // namespace prism::ops
