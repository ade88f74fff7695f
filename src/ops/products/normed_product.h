// A one-row product that also writes the row for the products after the next norm.
#pragma once

#include <optional>

#include "ops/joint_op.h"
#include "ops/products/matmul_sides.h"
#include "ops/tail.h"

namespace prism {

// Inputs: x, the matrix, the tail's others, the norm's weight. Outputs: the result in f32, and the
// unscaled rounded row of the norm (ops/products/rounded_rows.h).
class NormedProductOp : public JointOp {
 public:
  // rounded: as for MatmulOp.
  NormedProductOp(Tail tail, std::optional<DType> rounded)
      : tail_(std::move(tail)), rounded_(rounded) {}
  std::string_view name() const override { return "matmul and norm"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  void launch(DeviceCall& call) const override;
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
  std::string attributes() const override { return tail_.text() + ", rounded to 8 bits"; }

  // The kernel without its tail, or nullopt if the shape or the device does not allow it.
  static std::optional<ops::VectorProduct> product_of(const DeviceInfo& device, const Sides& sides);

 private:
  Tail tail_;
  std::optional<DType> rounded_;
};

}  // namespace prism
