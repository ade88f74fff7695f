// Products of a few rows with several matrices in one launch: side by side (q, k, v), or a pair
// that a chain combines into one result (gate and up).
//
// Each sum is accumulated in the same order as in a separate product, so the results are identical.
#pragma once

#include <optional>
#include <vector>

#include "ops/joint_op.h"
#include "ops/products/matmul_sides.h"
#include "ops/products/product_kernels.h"
#include "ops/tail.h"
#include "tensor/plan/preparation.h"

namespace prism {

// Whether products of this many rows are merged on a device. Devices that run kernels on the CPU
// gain little, because their launches are cheap, and their compilers are slow on several products
// of many rows; OpenCL and SYCL take a minute even for one.
bool joins_products(const DeviceInfo& device, int64_t rows);

// The sides of a product that uses the few-rows kernel, or nullopt if it uses another one.
std::optional<Sides> few_rows_sides(const Device& device, const MatmulOp& op,
                                    std::span<const Tensor> inputs, ElementType result,
                                    std::optional<DType> rounded);

// Inputs: the rows x (one tensor, or several that the products share), the matrices, the others of
// each tail in order. Outputs: one per matrix.
class SideBySideOp : public JointOp, public TakesUnscaled {
 public:
  // x_of: which of the first inputs each product multiplies.
  SideBySideOp(std::vector<Tail> tails, std::vector<uint32_t> x_of, std::optional<DType> rounded,
               std::optional<float> scale_epsilon = {})
      : tails_(std::move(tails)),
        x_of_(std::move(x_of)),
        rounded_(rounded),
        scale_epsilon_(scale_epsilon) {}
  std::string_view name() const override { return "matmul side by side"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  void launch(DeviceCall& call) const override;
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
  std::string attributes() const override;
  std::shared_ptr<const Op> of_unscaled(double epsilon) const override { return scaling(epsilon); }
  std::shared_ptr<const SideBySideOp> scaling(double epsilon) const;  // null if it cannot

  // The parts of the launch; an op that consumes all results may extend it.
  struct Parts {
    std::vector<ops::VectorProduct> products;
    std::vector<TailBinding> tails;
    std::vector<DeviceView> buffers;  // the matrices, those of x
    std::vector<ops::ProductExtent> extents;
    ops::ProductRows x;
    uint32_t rows;

    ops::ProductLaunch launch() const {
      return ops::vector_products_launch(products, extents, rows, x);
    }
  };
  Parts parts(const DeviceCall& call) const;
  size_t products() const { return tails_.size(); }
  bool has_one_x() const { return x_count() == 1; }
  // Whether a kernel for the device has room for this many more buffers (results count) and params.
  bool leaves(const DeviceInfo& device, std::span<const Tensor> inputs, size_t buffers,
              size_t params) const;

 private:
  size_t x_count() const;
  void bind_rows(const DeviceCall& call, Parts& parts) const;
  const Tensor& matrix(std::span<const Tensor> inputs, size_t i) const {
    return inputs[x_count() + i];
  }

  std::vector<Tail> tails_;
  std::vector<uint32_t> x_of_;
  std::optional<DType> rounded_;
  std::optional<float> scale_epsilon_;
};

// Inputs: x, two matrices of one shape and type, and the tail's others without number `made`, which
// is the product with the second matrix. The result may be rounded rows for the next product.
class PairedProductOp : public JointOp, public MakesPrepared, public TakesUnscaled {
 public:
  PairedProductOp(Tail tail, size_t made, std::optional<DType> rounded, bool rounds = false,
                  std::optional<float> scale_epsilon = {})
      : tail_(std::move(tail)),
        made_(made),
        rounded_(rounded),
        rounds_(rounds),
        scale_epsilon_(scale_epsilon) {}
  std::string_view name() const override { return "matmul of two"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  void launch(DeviceCall& call) const override;
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
  std::string attributes() const override {
    return tail_.text() + (scale_epsilon_ ? ", normed" : "") +
           (rounds_ ? ", rounded to 8 bits" : "");
  }
  std::shared_ptr<const Op> of_unscaled(double epsilon) const override;
  std::shared_ptr<const Op> with_prepared(const Device& device, std::span<const Tensor> inputs,
                                          const Op& prepare, const Shape& seen,
                                          bool kept) const override;

 private:
  // The kernel without its tail, or nullopt if it cannot round its results on the device.
  std::optional<ops::VectorProduct> product_of(const DeviceInfo& device, const Sides& sides) const;

  Tail tail_;
  size_t made_;
  std::optional<DType> rounded_;
  bool rounds_;
  std::optional<float> scale_epsilon_;
};

}  // namespace prism
