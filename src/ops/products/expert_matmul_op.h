// The op for rows routed to experts: x [rows, in] or [rows, used, in], weights [experts, out, in],
// experts i32 [rows, used].
#pragma once

#include "ops/products/product_kernels.h"
#include "ops/tail.h"
#include "tensor/op.h"
#include "tensor/plan/joint.h"
#include "tensor/plan/preparation.h"

namespace prism {

class ExpertMatmulOp : public TailedOp, public PreparesInput, public JoinsAlike {
 public:
  // rounded: x is the output of RoundRowsOp for rows of this type; x_share: slots per row of x then
  // (otherwise x's shape gives it).
  explicit ExpertMatmulOp(Tail tail = {}, std::optional<DType> rounded = {}, int64_t x_share = 0)
      : TailedOp(std::move(tail)), rounded_(rounded), x_share_(x_share) {}
  std::string_view name() const override { return "expert_matmul"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;  // expert_matmul_run.cpp
  void launch(DeviceCall& call) const override;
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
  std::optional<Preparation> preparation(const Device& device,
                                         std::span<const Tensor> inputs) const override;
  // Gate and up for few slots (paired_experts.cpp).
  std::optional<Joint> with_maker(const Device& device, std::span<const Tensor> inputs, size_t made,
                                  const OpUse& maker) const override;
  std::optional<Joint> beside(const Device& device, std::span<const OpUse> uses) const override;
  std::string attributes() const override { return tail_.text(); }

  struct Sizes {
    int64_t slots, n, k, experts;
    int64_t x_share;  // slots per row of x
  };
  Sizes sizes_of(const Layout& x, const Layout& weights, const Layout& experts) const;
  // Whether each slot reads its expert's weights separately: because there are few slots, or also
  // because of the types. x: the type of the rows before rounding.
  static bool reads_by_slot(const Sizes& sizes);
  static bool reads_by_slot(const Sizes& sizes, DType x, ElementType weight, bool rounded);
  static bool is_slot_type(ElementType type);  // for x and results
  // The kernel for this; pair: with two matrices.
  static ops::VectorProduct product_by_slot(const DeviceInfo& device, const Sizes& sizes, DType x,
                                            ElementType weight, DType y, bool pair = false);

  // For PairedExpertsOp, with its inputs: the tail's input `made` is the product with the second
  // weights.
  void launch_pair(DeviceCall& call, size_t made) const;
  DType result_type() const { return tail_.chain().output; }  // with a tail

 protected:
  std::shared_ptr<const Op> with_tail(Tail tail) const override;

 private:
  std::optional<DType> rounded_;
  int64_t x_share_;
};

}  // namespace prism
