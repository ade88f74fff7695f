// Decides when a product absorbs the following norm, and emits its launch.
#include "ops/products/normed_product.h"

#include <fmt/format.h>

#include "ops/products/joint_products.h"
#include "ops/products/product_launch.h"
#include "prism/error.h"

namespace prism {

namespace {

constexpr size_t kMostBuffers = 8;   // of a kernel
constexpr int64_t kNormBlock = 128;  // rounded_rows.h

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

}  // namespace

// Of one row only: where each weight serves several, groups of 32 weight rows are too few.
std::optional<Joint> MatmulOp::with_unscaled(const Device& device, std::span<const Tensor> inputs,
                                             const Shape& seen, const RowScale& scale) const {
  const Tensor& weight = scale.weight;
  const ElementType f32 = DType::f32;
  const ElementType result =
      tail_.empty()
          ? product_type(rounded_ ? ElementType(*rounded_) : inputs[0].type(), inputs[1].type())
          : ElementType(tail_.chain().output);
  if (narrowed_ || scale_epsilon_ || inputs[0].size(0) != 1 || result != f32 ||
      seen[-1] != inputs[1].size(-1) || seen[-1] % kNormBlock != 0 || weight.type() != f32 ||
      weight.layout().offset != 0 || !weight.layout().is_dense() ||
      inputs.size() + 3 > kMostBuffers)
    return std::nullopt;
  const auto sides = few_rows_sides(device, *this, inputs, result, rounded_);
  if (!sides || !NormedProductOp::product_of(device.info(), *sides)) return std::nullopt;
  Joint joint{std::make_shared<NormedProductOp>(tail_, rounded_), {inputs.begin(), inputs.end()}};
  joint.inputs.push_back(weight);
  return joint;
}

std::shared_ptr<const Op> MatmulOp::of_unscaled(double epsilon) const {
  if (!rounded_) return nullptr;
  return std::make_shared<MatmulOp>(tail_, rounded_, narrowed_, static_cast<float>(epsilon));
}

std::optional<ops::VectorProduct> NormedProductOp::product_of(const DeviceInfo& device,
                                                              const Sides& s) {
  auto product = ops::rounding_product(few_rows_product(device, s), word(s.n), device.capabilities,
                                       device.compute_units);
  if (product) product->unscaled = true;
  return product;
}

std::vector<Spec> NormedProductOp::infer(std::span<const Tensor> inputs) const {
  const int64_t n = inputs[1].size(1);
  const uint64_t bytes = ops::unscaled_bytes(static_cast<uint64_t>(n));
  return {{{inputs[0].size(0), n}, DType::f32}, {{1, static_cast<int64_t>(bytes / 4)}, DType::i32}};
}

void NormedProductOp::launch(DeviceCall& call) const {
  const Sides s = sides_of(call.input(0), call.input(1), call.output(), rounded_);
  auto tail = bind_tail(call, tail_, 2, s.n);
  const auto product = product_of(call.info(), s);
  if (!tail || !product)
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("{}: the kernels cannot read the layout of an input of its chain", name()));
  tail->buffers.push_back(call.input(call.input_count() - 1));
  tail->buffers.push_back(call.output(0));
  launch_product(call, *product,
                 ops::vector_product_launch(*product, word(s.n), word(s.k), word(s.m),
                                            word(s.in_a.step), word(s.n)),
                 {call.input(1), call.input(0)}, *tail, call.output(1));
}

double NormedProductOp::operations(std::span<const DeviceView> inputs,
                                   std::span<const DeviceView>) const {
  return 2.0 * static_cast<double>(inputs[1].elements());
}

}  // namespace prism
