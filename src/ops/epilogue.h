// What follows a product in the same launch: bias, gate, residual, and any chain after them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/dsl.h"
#include "ops/product_kernels.h"
#include "ops/tail.h"

namespace prism::ops {

class Epilogue {
 public:
  // Declares the buffers that are wanted, in order: bias, bias_up (with a gate), residual, the
  // tail's.
  Epilogue(Gate gate, bool bias, bool residual, DType y, std::shared_ptr<const TailSpec> tail,
           const std::string& suffix = {});
  // The tail's, after the kernel's own.
  void declare_params();
  // sums: the product, or those of gate and up; row and column: of the result; place: its index in
  // y.
  dsl::Value apply(const std::vector<dsl::Value>& sums, dsl::Value row, dsl::Value column,
                   dsl::Value place) const;
  // Of four products side by side, without a gate; column and place are multiples of four.
  std::vector<dsl::Value> apply_four(const std::vector<dsl::Value>& sums, dsl::Value row,
                                     dsl::Value column, dsl::Value place) const;

 private:
  dsl::Value before_tail(const std::vector<dsl::Value>& sums, dsl::Value column,
                         dsl::Value place) const;

  Gate gate_;
  std::vector<dsl::In> biases_;
  std::optional<dsl::In> residual_;
  std::optional<TailCode> tail_;
};

}  // namespace prism::ops
