// Emits the launch that multiplies, rotates and writes to the caches.
#include "ops/products/products_to_cache.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/products/cache_tail.h"
#include "ops/products/product_launch.h"
#include "prism/error.h"

namespace prism {

bool ProductsToCacheOp::fits(const DeviceInfo& device, std::span<const Tensor> inputs) const {
  return products_.leaves(device, inputs.subspan(own_inputs()), 1 + own_inputs(), 2);
}

std::vector<Spec> ProductsToCacheOp::infer(std::span<const Tensor> inputs) const {
  const Tensor &cache = inputs[0], &x = inputs[own_inputs()], &w = inputs[own_inputs() + 1];
  const int64_t dim = cache.shape()[-1];
  return {{cache.shape(), cache.type()},
          {cache.shape(), cache.type()},
          {{x.size(0), w.size(1) / dim, dim}, DType::f32}};
}

void ProductsToCacheOp::launch(DeviceCall& call) const {
  // The products as they would be alone. Nobody sees their results: memory for them is not needed.
  std::vector<DeviceView> inputs, results;
  for (size_t i = own_inputs(); i < call.input_count(); ++i) inputs.push_back(call.input(i));
  for (size_t i = 0; i < products_.products(); ++i)
    results.push_back(
        {0, DType::f32, Layout::dense({inputs[0].layout.shape[0], inputs[1 + i].layout.shape[1]})});
  SideBySideOp::Parts parts = products_.parts(
      DeviceCall(call.device(), std::move(inputs), std::move(results), [](uint64_t) { return 0; }));

  const DeviceView& cache = call.output(0);
  const Shape& shape = cache.layout.shape;
  const ops::CacheRows rows{cache.type.plain(), static_cast<uint32_t>(shape[-1]),
                            rotates_ ? static_cast<uint32_t>(options_.dims / 2) : 0,
                            options_.pairing};
  // A row's sum does not depend on how many rows a subgroup has.
  for (size_t i = 0; i < parts.products.size(); ++i)
    if (rows.rotates(i)) parts.products[i].rows_each = std::max(2u, parts.products[i].rows_each);
  std::vector<DeviceView> targets = {call.output(2), call.output(0), call.output(1)};
  for (size_t i = 2; i < own_inputs(); ++i) targets.push_back(call.input(i));
  const auto cache_rows = static_cast<uint32_t>(shape.elements() / (shape[-1] * shape[-2]));
  launch_products(call, parts.products, {}, parts.launch(), parts.buffers, parts.tails, targets,
                  &rows, {cache_rows, static_cast<float>(options_.magnitude)});
}

bool ProductsToCacheOp::takes_layout(size_t input, const Tensor& tensor,
                                     const DeviceInfo& device) const {
  return input < own_inputs() ? Op::takes_layout(input, tensor, device)
                              : products_.takes_layout(input - own_inputs(), tensor, device);
}

double ProductsToCacheOp::operations(std::span<const DeviceView> inputs,
                                     std::span<const DeviceView>) const {
  double sum = 0;
  const auto of_products = inputs.subspan(own_inputs());
  for (size_t i = 0; i < products_.products(); ++i)
    sum += 2.0 * static_cast<double>(of_products[0].layout.shape[0]) *
           static_cast<double>(of_products[1 + i].elements());
  return sum;
}

std::shared_ptr<const Op> ProductsToCacheOp::of_unscaled(double epsilon) const {
  const auto products = products_.scaling(epsilon);
  return products ? std::make_shared<ProductsToCacheOp>(*products, options_, rotates_) : nullptr;
}

std::string ProductsToCacheOp::attributes() const {
  const std::string tails = products_.attributes();
  return fmt::format("{}{}{}", tails, tails.empty() ? "" : ", ", rope_text(options_, rotates_));
}

}  // namespace prism
