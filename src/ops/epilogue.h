// What follows a product in the same launch: bias, gate, residual.
#pragma once

#include <optional>
#include <vector>

#include "dsl/dsl.h"
#include "ops/product_kernels.h"

namespace prism::ops {

class Epilogue {
 public:
  // Declares the buffers that are wanted, in order: bias, bias_up (with a gate), residual.
  Epilogue(Gate gate, bool bias, bool residual, DType y);
  // sums: the product, or those of gate and up; column: of the result; place: its index in y.
  dsl::Value apply(const std::vector<dsl::Value>& sums, dsl::Value column, dsl::Value place) const;
  bool empty() const { return gate_ == Gate::none && biases_.empty() && !residual_; }

 private:
  Gate gate_;
  std::vector<dsl::In> biases_;
  std::optional<dsl::In> residual_;
};

}  // namespace prism::ops
