// The op that scatters a tensor's elements into a larger, constant tensor.
#pragma once

#include "tensor/op.h"

namespace prism {

// No two elements of the layout may share an address.
class ViewGradientOp : public Op {
 public:
  ViewGradientOp(const char* name, const Shape& base, const Layout& layout, double value = 0)
      : name_(name), base_(base), layout_(layout), value_(value) {}

  std::string_view name() const override { return name_; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
  bool takes_layout(size_t, const Tensor&, const DeviceInfo&) const override { return true; }

 private:
  bool covers() const { return layout_.shape.elements() == base_.elements(); }

  const char* name_;
  Shape base_;
  Layout layout_;
  double value_;
};

}  // namespace prism
