// The q, k and v products merged with rope_to_cache in one launch.
#pragma once

#include <optional>
#include <span>

#include "ops/products/joint_products.h"
#include "prism/ops/rope.h"

namespace prism {

// Inputs: k_cache, v_cache, places, [frequencies], then those of the products. Outputs: the caches,
// and rotated queries [rows, heads, dim].
class ProductsToCacheOp : public JointOp, public TakesUnscaled {
 public:
  // options.dims: the number of rotated dims, if rotates.
  ProductsToCacheOp(SideBySideOp products, const RopeOptions& options, bool rotates)
      : products_(std::move(products)), options_(options), rotates_(rotates) {}
  // Whether a kernel for the device has room for both. inputs: those of this op.
  bool fits(const DeviceInfo& device, std::span<const Tensor> inputs) const;

  std::string_view name() const override { return "matmul side by side to cache"; }
  bool has_gradient() const override { return false; }
  uint32_t changed_inputs() const override { return 2; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  void launch(DeviceCall& call) const override;
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
  std::string attributes() const override;
  std::shared_ptr<const Op> of_unscaled(double epsilon) const override;

 private:
  size_t own_inputs() const { return rotates_ ? 4 : 3; }

  SideBySideOp products_;
  RopeOptions options_;
  bool rotates_;
};

}  // namespace prism
