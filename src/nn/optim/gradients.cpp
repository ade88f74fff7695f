// Clipping of gradients, and moving averages of parameters.
#include <fmt/format.h>

#include "nn/train/step_context.h"
#include "ops/rows/square_sum.h"
#include "prism/error.h"
#include "prism/nn/optimizer.h"
#include "prism/ops/assign.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "tensor/op.h"

namespace prism::nn {

namespace {

void check_limit(const char* doing, double most) {
  if (most > 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: a limit of {}; give a positive number", doing, most));
}

// Replaces grad() of the parameters that have one.
template <class Change>
void change_gradients(std::span<const Tensor> parameters, const Change& change) {
  const NoGrad off;
  std::vector<Tensor> changed;
  for (const Tensor& each : parameters) {
    if (!each.grad()) continue;
    each.node()->grad = change(each.node()->grad);
    changed.push_back(each.node()->grad);
  }
  eval(changed);
}

}  // namespace

Tensor global_norm(std::span<const Tensor> gradients) {
  // As a backward pass makes them: see below.
  const std::vector<Tensor> made(gradients.rbegin(), gradients.rend());
  if (has_square_sum(made)) return sqrt(square_sum(made));
  Tensor total;
  // The last ones first, as a backward pass makes them: a plan then needs no activations for long.
  for (size_t i = gradients.size(); i-- > 0;) {
    if (!gradients[i]) continue;
    const Tensor squares = sum(square(gradients[i].astype(DType::f32)));
    total = total ? total + squares : squares;
  }
  if (!total) throw Error(ErrorCode::kInvalidArgument, "global_norm: there are no gradients");
  return sqrt(total);
}

Tensor clip_factor(const Tensor& norm, double most) {
  check_limit("clip_factor", most);
  return minimum(most / (norm + 1e-6), 1.0);
}

double clip_grad_norm(std::span<const Tensor> parameters, double most) {
  check_limit("clip_grad_norm", most);
  std::vector<Tensor> gradients;
  for (const Tensor& each : parameters) gradients.push_back(each.grad());
  const Tensor norm = global_norm(gradients), factor = clip_factor(norm, most);
  change_gradients(parameters, [&](const Tensor& gradient) { return gradient * factor; });
  return norm.item();
}

void clip_grad_value(std::span<const Tensor> parameters, double most) {
  check_limit("clip_grad_value", most);
  change_gradients(parameters,
                   [&](const Tensor& gradient) { return clamp(gradient, -most, most); });
}

MovingAverage::MovingAverage(std::span<const Tensor> parameters, double decay)
    : parameters_(parameters.begin(), parameters.end()), decay_(decay) {
  if (!(decay >= 0 && decay <= 1)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("MovingAverage: a decay of {}; it must be from 0 to 1", decay));
  }
  const NoGrad off;
  for (const Tensor& each : parameters_) averages_.push_back(each + 0.0);
  eval(averages_);
}

std::vector<Tensor> MovingAverage::updates(std::span<const Tensor> parameters) const {
  const NoGrad off;
  std::vector<Tensor> result;
  for (size_t i = 0; i < averages_.size(); ++i)
    result.push_back(change(averages_[i], decay_ * averages_[i] + (1 - decay_) * parameters[i]));
  return result;
}

void MovingAverage::update() { eval(updates(parameters_)); }

void MovingAverage::swap() {
  const NoGrad off;
  std::vector<Tensor> changes;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const Tensor before = (parameters_[i] + 0.0).eval();
    changes.push_back(assign(parameters_[i], averages_[i]).eval());
    changes.push_back(assign(averages_[i], before).eval());
  }
}

}  // namespace prism::nn
