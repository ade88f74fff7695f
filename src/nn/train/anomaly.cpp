// Anomalies: losses and gradients that are not finite.
#include "nn/train/anomaly.h"

#include <cmath>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/grad.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "tensor/op.h"

namespace prism::nn {

namespace {

// x - x is NaN for NaN and the infinities, else 0.
Tensor finite(const Tensor& x) { return (x - x) == 0.0; }

bool all_finite(const Tensor& x) { return all(finite(x)).item() != 0; }

}  // namespace

void throw_anomaly(const Anomaly& found, const std::function<Tensor(std::span<const Tensor>)>& loss,
                   std::span<const Tensor> batch, StepContext& context, Module* model,
                   std::span<const Tensor> parameters) {
  std::string where;
  context.observe = [&](const Layer& layer, const Tensor& output) {
    if (!where.empty() || !is_float(output.dtype().plain()) || all_finite(output)) return;
    where = fmt::format("began in the output of {}{}", model ? path_of(*model, layer) : "a layer",
                        layer.text().empty() ? "" : ", " + layer.text());
  };
  Tensor value;
  {
    const WithContext with(context);
    value = loss(batch);
  }
  if (where.empty() && !all_finite(value)) where = "began after the last layer, in the loss itself";
  if (where.empty()) {
    const std::vector<Tensor> slopes = gradients(value, parameters);
    const NamedTensors names = model ? model->named_parameters() : NamedTensors{};
    for (size_t i = slopes.size(); i-- > 0 && where.empty();) {
      if (all_finite(slopes[i])) continue;
      std::string name = fmt::format("parameter {}", i);
      for (const auto& [own, tensor] : names)
        if (tensor.node() == parameters[i].node()) name = own;
      where = "began in the gradient of " + name;
    }
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("training: step {} has a loss of {} and gradients with a norm of {}; it {}"
                  ". The parameters are as before the step; try a smaller learning rate, "
                  "clip the gradients, or look at this batch",
                  found.step, found.loss, found.norm,
                  where.empty() ? "cannot be repeated" : where));
}

Tensor are_finite(std::span<const Tensor> numbers) {
  Tensor ok;
  for (const Tensor& each : numbers) ok = ok ? logical_and(ok, finite(each)) : finite(each);
  return ok;
}

}  // namespace prism::nn
