// The KV cache: keys and values of all positions of all sequences for each layer, allocated once.
#pragma once

#include <cstdint>
#include <vector>

#include "llm/model/config.h"
#include "prism/llm/placement.h"
#include "prism/tensor.h"

namespace prism::llm {

class KvCache {
 public:
  KvCache() = default;
  // slots: sequences held at once, each with up to `positions` tokens. Types: f32, f16, q8_0.
  KvCache(const Config& config, const Placement& placement, int64_t slots, int64_t positions);

  int64_t slots() const { return slots_; }
  int64_t positions() const { return positions_; }
  ElementType type() const { return type_; }
  uint64_t bytes() const;  // over all layers

  // [slots, positions + 1, kv_heads, head_dim]. The last position of a slot is unused by sequences:
  // the padding rows of a batch are written there.
  const Tensor& keys(int64_t layer) const { return keys_[static_cast<size_t>(layer)]; }
  const Tensor& values(int64_t layer) const { return values_[static_cast<size_t>(layer)]; }

  // The row of a position among slots * (positions + 1) rows, and the row that padding writes to.
  int64_t row(int64_t slot, int64_t position) const { return slot * (positions_ + 1) + position; }
  int64_t spare_row() const { return row(0, positions_); }

 private:
  int64_t slots_ = 0, positions_ = 0;
  ElementType type_ = DType::f16;
  std::vector<Tensor> keys_, values_;
};

}  // namespace prism::llm
