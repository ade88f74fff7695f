// The three ops of a convolution, each the gradient of the others.
#pragma once

#include "ops/conv/windows.h"
#include "tensor/op.h"

namespace prism {

class ConvOp : public Op {
 public:
  enum class Kind {
    forward,          // x, weight -> y
    input_gradient,   // gradient of y, weight -> gradient of x
    weight_gradient,  // x, gradient of y -> gradient of weight
  };
  struct Sizes {
    int64_t batch = 0, channels = 0, filters = 0, groups = 1;
    ops::Windows windows;

    int64_t group_channels() const { return channels / groups; }
    int64_t group_filters() const { return filters / groups; }
    Shape x() const { return {batch, channels, windows.height, windows.width}; }
    Shape weight() const { return {filters, group_channels(), windows.window_y, windows.window_x}; }
    Shape y() const { return {batch, filters, windows.out_y, windows.out_x}; }
  };

  ConvOp(Kind kind, const Sizes& sizes) : kind_(kind), sizes_(sizes) {}

  std::string_view name() const override;
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;  // conv_cpu.cpp
  void launch(DeviceCall& call) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;

 private:
  // Many channels: runs as a matrix product (conv_product.cpp).
  bool is_product(const DeviceInfo& device, DType type) const;
  void launch_product(DeviceCall& call) const;

  Kind kind_;
  Sizes sizes_;
};

}  // namespace prism
