// The op that computes a chain of element functions: the only elementwise op there is.
#pragma once

#include "tensor/chain/chain.h"
#include "tensor/op.h"

namespace prism {

class ChainOp : public Op {
 public:
  // shape: of the result when the chain has no inputs, and a floor to broadcast to otherwise.
  explicit ChainOp(Chain chain, Shape shape = {}) : chain_(std::move(chain)), shape_(shape) {}

  const Chain& chain() const { return chain_; }
  const Shape& shape() const { return shape_; }

  std::string_view name() const override;
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  // Of copies; prism/ops/elementwise.h makes chains that know the rest.
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  int overwrites(std::span<const Tensor> inputs) const override;
  bool launches_overwrite() const override { return true; }
  std::string attributes() const override;

 private:
  Chain chain_;
  Shape shape_;
};

// Whether a chain is one input as it is.
bool is_copy(const Chain& chain);
// The chain that gives each element back.
Chain copy_chain(DType type);

// The chain that gives each element in another type.
Chain cast_chain(DType from, DType to);

// The elements of x, lying row by row.
Tensor copied(const Tensor& x);

// A launch of a chain over these views, for ops that need one on their way.
void launch_chain(DeviceCall& call, const Chain& chain, std::span<const DeviceView> inputs,
                  const DeviceView& output);

// A kernel has at most eight buffers and 24 parameters: whether a chain of these inputs fits.
bool chain_fits(const Chain& chain, std::span<const Layout> inputs, const Shape& output);

}  // namespace prism
