// Routed products with two weight matrices that a chain combines into one result (gate and up), in
// one launch: each slot reads its expert's rows of both.
//
// Each sum is accumulated in the same order as in a separate product, so the results are identical.
#pragma once

#include <optional>

#include "ops/joint_op.h"
#include "ops/products/expert_matmul_op.h"
#include "ops/tail.h"

namespace prism {

// Inputs: x, two weights of one shape and type, experts, and the tail's others without number
// `made`, which is the product with the second weights.
class PairedExpertsOp : public JointOp {
 public:
  // alone: the product with the first weights, including the tail.
  PairedExpertsOp(ExpertMatmulOp alone, size_t made) : alone_(std::move(alone)), made_(made) {}
  std::string_view name() const override { return "expert_matmul of two"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  void launch(DeviceCall& call) const override;
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
  std::string attributes() const override { return alone_.attributes(); }

 private:
  ExpertMatmulOp alone_;
  size_t made_;
};

}  // namespace prism
