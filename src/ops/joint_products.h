// Products of a few rows with several matrices in one launch: side by side (queries, keys, values),
// or two of which a chain makes one result (gate and up).
//
// Each sum is added up in the order of the product alone, so the numbers are the same.
#pragma once

#include <optional>
#include <vector>

#include "ops/tail.h"
#include "tensor/op.h"

namespace prism {

// Whether products of so many rows are joined for a device. Those whose kernels run on the CPU gain
// little, since a launch costs them little, and their compilers take long for several products of
// many rows; those of OpenCL and SYCL a minute even for one.
bool joins_products(const DeviceInfo& device, int64_t rows);

// Inputs: x, the matrices, the others of each tail in order. Outputs: one a matrix.
class SideBySideOp : public Op {
 public:
  SideBySideOp(std::vector<Tail> tails, std::optional<DType> rounded)
      : tails_(std::move(tails)), rounded_(rounded) {}
  std::string_view name() const override { return "matmul side by side"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;
  bool takes_layout(size_t, const Tensor&, const DeviceInfo&) const override { return true; }
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
  std::string attributes() const override;

 private:
  std::vector<Tail> tails_;
  std::optional<DType> rounded_;
};

// Inputs: x, two matrices of one shape and type, the tail's others without number `made`, which is
// the product with the second matrix.
class PairedProductOp : public Op {
 public:
  PairedProductOp(Tail tail, size_t made, std::optional<DType> rounded)
      : tail_(std::move(tail)), made_(made), rounded_(rounded) {}
  std::string_view name() const override { return "matmul of two"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;
  bool takes_layout(size_t, const Tensor&, const DeviceInfo&) const override { return true; }
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
  std::string attributes() const override { return tail_.text(); }

 private:
  Tail tail_;
  size_t made_;
  std::optional<DType> rounded_;
};

}  // namespace prism
