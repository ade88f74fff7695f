// The op that computes a chain: the only elementwise op.
#pragma once

#include "tensor/chain/chain.h"
#include "tensor/op.h"

namespace prism {

class ChainOp : public Op {
 public:
  // shape: the result's if the chain has no inputs; otherwise the inputs also broadcast to it.
  // in_place: writes into the memory of input 0, which has the shape and type of the result.
  explicit ChainOp(Chain chain, Shape shape = {}, bool in_place = false)
      : chain_(std::move(chain)), shape_(shape), in_place_(in_place) {}

  const Chain& chain() const { return chain_; }
  const Shape& shape() const { return shape_; }
  bool in_place() const { return in_place_; }

  std::string_view name() const override;
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  // For copies only; ElementwiseOp has the gradients of all functions.
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  int overwrites(std::span<const Tensor> inputs) const override;
  bool launches_overwrite() const override { return true; }
  uint32_t changed_inputs() const override { return in_place_ ? 1 : 0; }
  bool has_gradient() const override { return !in_place_; }
  std::string attributes() const override;

 private:
  Chain chain_;
  Shape shape_;
  bool in_place_;
};

// Whether a chain is the identity.
bool is_copy(const Chain& chain);
// The identity.
Chain copy_chain(DType type);

// A conversion to another type.
Chain cast_chain(DType from, DType to);

// A copy of x in row-major order.
Tensor copied(const Tensor& x);

// Adds a launch of a chain over these views to the launches of another op.
void launch_chain(DeviceCall& call, const Chain& chain, std::span<const DeviceView> inputs,
                  const DeviceView& output);

// Whether a chain with these inputs fits a kernel: eight buffers and 24 parameters.
bool chain_fits(const Chain& chain, std::span<const Layout> inputs, const Shape& output);

}  // namespace prism
