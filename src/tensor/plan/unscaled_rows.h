// A norm between two products, done by both of them: with s = 1 / sqrt(mean(x^2) + epsilon), one
// number for each row, products of the rows x * weight * s are s times those of x * weight. What
// makes x leaves the rows without s beside it, with what s is made of, and what takes the rows
// multiplies its results. How such rows lie is between these ops (ops/products/rounded_rows.h).
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "tensor/op.h"
#include "tensor/plan/joint.h"

namespace prism {

struct RowScale {
  Tensor weight;
  double epsilon = 0;
};

// An op that may make rows of its first input in this way, rounded for products.
class ScalesRows {
 public:
  virtual ~ScalesRows() = default;
  virtual std::optional<RowScale> row_scale(std::span<const Tensor> inputs) const = 0;
};

// An op that can leave such rows of its only output, seen in that shape, beside it.
class MakesUnscaled {
 public:
  virtual ~MakesUnscaled() = default;
  // Outputs: its own, then the rows. Nothing where it cannot, or should not.
  virtual std::optional<Joint> with_unscaled(const Device& device, std::span<const Tensor> inputs,
                                             const Shape& seen, const RowScale& scale) const = 0;
};

// An op whose rows may be such ones, in place of scaled rows; null where they may not.
class TakesUnscaled {
 public:
  virtual ~TakesUnscaled() = default;
  virtual std::shared_ptr<const Op> of_unscaled(double epsilon) const = 0;
};

}  // namespace prism
