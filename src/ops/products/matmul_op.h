// The op of matrix products: [m, k] times [k, n], or a batch [b, m, k] times [b, k, n].
#pragma once

#include <array>
#include <optional>

#include "ops/tail.h"
#include "tensor/op.h"
#include "tensor/plan/joint.h"
#include "tensor/plan/preparation.h"
#include "tensor/plan/unscaled_rows.h"

namespace prism {

// How a matrix lies: rows `step` elements apart, or columns where transposed.
struct MatrixLayout {
  bool transposed = false;
  int64_t step = 0;
  int64_t batch = 1, batch_step = 0;
};
// Nothing where neither rows nor columns are contiguous.
std::optional<MatrixLayout> matrix_layout(const Layout& layout);

// The ways a product may go on devices with kernels, in the order of preference; which of them one
// product takes can be measured (ops/bench/tune.h).
inline constexpr std::array kProductWays = {"few_rows", "vendor", "kernel"};

// What a product of x with weights comes out as.
ElementType product_type(ElementType x, ElementType weight);

class MatmulOp : public TailedOp,
                 public PreparesInput,
                 public JoinsAlike,
                 public MakesUnscaled,
                 public TakesUnscaled {
 public:
  // rounded: x is what RoundRowsOp made of rows of this type; narrowed: what a cast made of them;
  // scale_epsilon: it is a rounded row without the scale of a norm.
  explicit MatmulOp(Tail tail = {}, std::optional<DType> rounded = {},
                    std::optional<DType> narrowed = {}, std::optional<float> scale_epsilon = {})
      : TailedOp(std::move(tail)),
        rounded_(rounded),
        narrowed_(narrowed),
        scale_epsilon_(scale_epsilon) {}
  std::string_view name() const override { return "matmul"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;  // matmul_cpu.cpp
  void launch(DeviceCall& call) const override;      // matmul_launch.cpp
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
  // What the vendor's product is added to, where that is all the tail does.
  int overwrites(std::span<const Tensor> inputs) const override;
  bool launches_overwrite() const override { return true; }
  std::optional<Preparation> preparation(const Device& device,
                                         std::span<const Tensor> inputs) const override;
  // Few rows by several matrices (joint_products.cpp).
  std::optional<Joint> with_maker(const Device& device, std::span<const Tensor> inputs, size_t made,
                                  const OpUse& maker) const override;
  std::optional<Joint> beside(const Device& device, std::span<const OpUse> uses) const override;
  // Norms before and after (normed_product.cpp).
  std::optional<Joint> with_unscaled(const Device& device, std::span<const Tensor> inputs,
                                     const Shape& seen, const RowScale& scale) const override;
  std::shared_ptr<const Op> of_unscaled(double epsilon) const override;
  std::string attributes() const override {
    return tail_.text() + (scale_epsilon_ ? ", normed" : "");
  }

 protected:
  std::shared_ptr<const Op> with_tail(Tail tail) const override;

 private:
  std::optional<DType> rounded_, narrowed_;
  std::optional<float> scale_epsilon_;
};

}  // namespace prism
