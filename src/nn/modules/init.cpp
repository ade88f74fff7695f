// Initialisers of parameters.
#include "prism/nn/init.h"

#include <cmath>

#include <fmt/format.h>

#include "ops/create/random_keys.h"
#include "prism/error.h"
#include "prism/ops/assign.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"

namespace prism::nn::init {

Fans fans(const Shape& shape) {
  if (shape.rank() < 2) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("init: a parameter of shape {} has no number of inputs and outputs; "
                            "it needs two axes or more",
                            shape.text()));
  }
  double window = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) window *= static_cast<double>(shape[axis]);
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

void constant(const Tensor& parameter, double value) {
  assign(parameter, full(parameter.shape(), value, parameter.dtype(), parameter.device())).eval();
}

void uniform(const Tensor& parameter, double low, double high) {
  assign(parameter, prism::uniform(parameter.shape(), next_random_key(), low, high,
                                   parameter.dtype().plain(), parameter.device()))
      .eval();
}

void normal(const Tensor& parameter, double mean, double deviation) {
  assign(parameter, prism::normal(parameter.shape(), next_random_key(), mean, deviation,
                                  parameter.dtype().plain(), parameter.device()))
      .eval();
}

void xavier_uniform(const Tensor& parameter, double gain) {
  const Fans f = fans(parameter.shape());
  const double bound = gain * std::sqrt(6 / (f.in + f.out));
  uniform(parameter, -bound, bound);
}

void xavier_normal(const Tensor& parameter, double gain) {
  const Fans f = fans(parameter.shape());
  normal(parameter, 0, gain * std::sqrt(2 / (f.in + f.out)));
}

void kaiming_uniform(const Tensor& parameter, double gain) {
  const double bound = gain * std::sqrt(3 / fans(parameter.shape()).in);
  uniform(parameter, -bound, bound);
}

void kaiming_normal(const Tensor& parameter, double gain) {
  normal(parameter, 0, gain / std::sqrt(fans(parameter.shape()).in));
}

}  // namespace prism::nn::init
