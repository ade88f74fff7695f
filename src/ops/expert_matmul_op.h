// The op of rows routed to experts: x [rows, in] or [rows, used, in], weights [experts, out, in],
// experts i32 [rows, used].
#pragma once

#include "tensor/op.h"

namespace prism {

class ExpertMatmulOp : public Op {
 public:
  std::string_view name() const override { return "expert_matmul"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;  // expert_matmul_run.cpp
  void launch(DeviceCall& call) const override;
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
};

}  // namespace prism
