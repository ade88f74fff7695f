// The op of matrix products: [m, k] times [k, n], or a batch [b, m, k] times [b, k, n].
#pragma once

#include <optional>

#include "tensor/op.h"

namespace prism {

// How a matrix lies: rows `step` elements apart, or columns where transposed.
struct MatrixLayout {
  bool transposed = false;
  int64_t step = 0;
  int64_t batch = 1, batch_step = 0;
};
// Nothing where neither rows nor columns are contiguous.
std::optional<MatrixLayout> matrix_layout(const Layout& layout);

class MatmulOp : public Op {
 public:
  std::string_view name() const override { return "matmul"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;  // matmul_cpu.cpp
  void launch(DeviceCall& call) const override;      // matmul_launch.cpp
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
};

}  // namespace prism
