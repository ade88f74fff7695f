// Rows routed to two experts' matrices of which a chain makes one result (gate and up), in one
// launch: each slot reads its rows of both.
//
// Each sum is added up in the order of the product alone, so the numbers are the same.
#pragma once

#include <optional>

#include "ops/joint_op.h"
#include "ops/products/expert_matmul_op.h"
#include "ops/tail.h"

namespace prism {

// Inputs: x, weights and weights of one shape and type, experts, the tail's others without number
// `made`, which is the product with the second weights.
class PairedExpertsOp : public JointOp {
 public:
  // alone: of the first weights, with the tail.
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
