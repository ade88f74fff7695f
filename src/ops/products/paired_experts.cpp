// Decides which pairs of routed products share a launch, and emits it.
#include "ops/products/paired_experts.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/products/joint_products.h"
#include "ops/products/matmul_op.h"
#include "ops/products/product_launch.h"
#include "prism/error.h"

namespace prism {

namespace {

// What a kernel may have, and of parameters a tail.
constexpr size_t kMostBuffers = 8, kMostParams = 8;

bool is_same(const Tensor& a, const Tensor& b) {
  return a.node() == b.node() && a.output() == b.output() && a.layout() == b.layout();
}

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

}  // namespace

std::optional<Joint> ExpertMatmulOp::with_maker(const Device& device,
                                                std::span<const Tensor> inputs, size_t made,
                                                const OpUse& maker) const {
  const auto* other = dynamic_cast<const ExpertMatmulOp*>(&maker.op);
  if (!other || made < 3 || other->rounded_ != rounded_ || !is_same(inputs[0], maker.inputs[0]) ||
      !is_same(inputs[2], maker.inputs[2]))
    return std::nullopt;
  const Tensor &w = inputs[1], &w_other = maker.inputs[1], &seen = inputs[made];
  const Sizes s = sizes_of(inputs[0].layout(), w.layout(), inputs[2].layout());
  const DType x_type = rounded_.value_or(inputs[0].type().plain());
  const auto fits_alone = [&](const ExpertMatmulOp& op, std::span<const Tensor> own) {
    for (size_t i = 0; i < own.size(); ++i)
      if (!op.takes_layout(i, own[i], device.info())) return false;
    return !op.cannot_run(device.info(), own);
  };
  // Rows that nobody shares are rounded by each launch for itself. What the tail sees of the other
  // product has the place of the result.
  const bool fits =
      joins_products(device.info(), 1) && s.slots > 0 && s.n > 0 && s.k > 0 && s.experts > 0 &&
      reads_by_slot(s, x_type, w.type(), rounded_.has_value()) &&
      (rounded_ || !w.type().is_block()) && w.type() == w_other.type() &&
      w.layout() == w_other.layout() && fits_alone(*this, inputs) &&
      fits_alone(*other, maker.inputs) && is_slot_type(tail_.chain().output) &&
      seen.shape() == Shape{inputs[2].size(0), inputs[2].size(1), s.n} &&
      tail_.chain().inputs[made - 2] == seen.type().plain() &&
      std::ranges::count_if(inputs, [&](const Tensor& t) { return is_same(t, seen); }) == 1;
  if (!fits) return std::nullopt;
  std::vector<Tensor> both = {inputs[0], w, w_other, inputs[2]};
  for (size_t i = 3; i < inputs.size(); ++i)
    if (i != made) both.push_back(inputs[i]);
  Tail tail = tail_;
  size_t made_other = made - 3;
  if (!other->tail_.empty()) {  // becomes part of this one, whose last inputs are then the other's
    auto whole = Tail().then(joined(tail_.chain(), made - 2, other->tail_.chain()), 0);
    if (!whole) return std::nullopt;
    made_other = tail.others() - 1;
    tail = *std::move(whole);
    both.insert(both.end(), maker.inputs.begin() + 3, maker.inputs.end());
  }
  if (both.size() + 1 > kMostBuffers || tail.params() > kMostParams) return std::nullopt;
  return Joint{std::make_shared<PairedExpertsOp>(
                   ExpertMatmulOp(std::move(tail), rounded_, x_share_), made_other),
               std::move(both)};
}

std::optional<Joint> ExpertMatmulOp::beside(const Device&, std::span<const OpUse>) const {
  return std::nullopt;
}

void ExpertMatmulOp::launch_pair(DeviceCall& call, size_t made) const {
  const DeviceView &x = call.input(0), &w = call.input(1), &w_other = call.input(2),
                   &ids = call.input(3), &y = call.output();
  const Sizes s = sizes_of(x.layout, w.layout, ids.layout);
  const auto tail = bind_tail(call, tail_, 4, s.n, 0, made);
  if (!tail)
    throw Error(
        ErrorCode::kNotSupported,
        "expert_matmul of two: the kernels cannot read the layout of an input of its chain");
  const DType x_type = rounded_.value_or(x.type.plain());
  // Rows are shared between subgroups as by one product alone: sums are added up in that order.
  const auto cut = [&](bool pair) {
    return product_by_slot(call.info(), s, x_type, w.type, y.type.plain(), pair);
  };
  const uint32_t split = cut(false).split;
  ops::VectorProduct product = cut(true);
  product.split = split;
  product.subgroups = std::max(product.subgroups, split);
  launch_product(call, product,
                 ops::expert_vector_launch(product, word(s.n), word(s.k), word(s.slots),
                                           word(s.experts), word(s.x_share)),
                 {w, w_other, x, ids}, *tail, y);
}

std::vector<Spec> PairedExpertsOp::infer(std::span<const Tensor> inputs) const {
  const Shape& experts = inputs[3].shape();
  return {{{experts[0], experts[1], inputs[1].size(1)}, alone_.result_type()}};
}

void PairedExpertsOp::launch(DeviceCall& call) const { alone_.launch_pair(call, made_); }

double PairedExpertsOp::operations(std::span<const DeviceView> inputs,
                                   std::span<const DeviceView> outputs) const {
  return 4.0 * static_cast<double>(outputs[0].elements()) *
         static_cast<double>(inputs[1].layout.shape[-1]);
}

}  // namespace prism
