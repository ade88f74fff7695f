// The op for matrix products: [m, k] times [k, n], or a batch [b, m, k] times [b, k, n].
#pragma once

#include <array>
#include <optional>

#include "ops/tail.h"
#include "tensor/op.h"
#include "tensor/plan/joint.h"
#include "tensor/plan/preparation.h"
#include "tensor/plan/unscaled_rows.h"

namespace prism {

// The layout of a matrix: rows `step` elements apart, or columns if transposed.
struct MatrixLayout {
  bool transposed = false;
  int64_t step = 0;
  int64_t batch = 1, batch_step = 0;
};
// nullopt if neither rows nor columns are contiguous.
std::optional<MatrixLayout> matrix_layout(const Layout& layout);

// The implementations of a product on devices with kernels, in order of preference;
// ops/bench/tune.h can measure which is fastest for a product.
enum class ProductWay : uint8_t { few_rows, packed, vendor, kernel };
// Their names in tuned choices.
inline constexpr std::array kProductWayNames = {"few_rows", "packed", "vendor", "kernel"};

// The result type of a product of x with weights.
ElementType product_type(ElementType x, ElementType weight);

class MatmulOp : public TailedOp,
                 public PreparesInput,
                 public JoinsAlike,
                 public MakesUnscaled,
                 public TakesUnscaled {
 public:
  // rounded: x is the output of RoundRowsOp for rows of this type; narrowed: x was cast from this
  // type; scale_epsilon: x is an unscaled rounded row of a norm.
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
  // The addend of the vendor's product, if adding is all that the tail does.
  int overwrites(std::span<const Tensor> inputs) const override;
  bool launches_overwrite() const override { return true; }
  std::optional<Preparation> preparation(const Device& device,
                                         std::span<const Tensor> inputs) const override;
  // Merging few-row products with several matrices (joint_products.cpp).
  std::optional<Joint> with_maker(const Device& device, std::span<const Tensor> inputs, size_t made,
                                  const OpUse& maker) const override;
  std::optional<Joint> beside(const Device& device, std::span<const OpUse> uses) const override;
  bool joins_other_inputs() const override { return true; }
  // Folding norms before and after (normed_product.cpp).
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
