// Interfaces for folding a norm into the two products around it. With s = 1 / sqrt(mean(x^2) +
// epsilon) per row, a product with rows x * weight * s is s times the product with x * weight. The
// producer of x also writes the unscaled rows x * weight and the sums that give s; the consumer
// scales its results by s. ops/products/rounded_rows.h defines the layout of these rows.
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

// An op that may give normed and rounded rows of its first input; row_scale() returns the norm's
// weight and epsilon.
class ScalesRows {
 public:
  virtual ~ScalesRows() = default;
  virtual std::optional<RowScale> row_scale(std::span<const Tensor> inputs) const = 0;
};

// An op that can write unscaled rows of its only output, viewed in shape `seen`, as a second
// output.
class MakesUnscaled {
 public:
  virtual ~MakesUnscaled() = default;
  // Outputs: the op's own, then the rows. Returns nullopt if it cannot or if it does not pay.
  virtual std::optional<Joint> with_unscaled(const Device& device, std::span<const Tensor> inputs,
                                             const Shape& seen, const RowScale& scale) const = 0;
};

// Returns the variant that accepts unscaled rows, or null if the op needs scaled ones.
class TakesUnscaled {
 public:
  virtual ~TakesUnscaled() = default;
  virtual std::shared_ptr<const Op> of_unscaled(double epsilon) const = 0;
};

}  // namespace prism
