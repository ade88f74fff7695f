// Initialisers: new values in the memory of a parameter, from the seed of prism::seed().
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism::nn::init {

// The numbers of inputs and outputs of a weight [out, in, ...].
struct Fans {
  double in = 0, out = 0;
};
Fans fans(const Shape& shape);  // throws kInvalidArgument for fewer than two axes

void constant(const Tensor& parameter, double value);
void uniform(const Tensor& parameter, double low, double high);
void normal(const Tensor& parameter, double mean = 0, double deviation = 1);
// Glorot and Bengio, 2010.
void xavier_uniform(const Tensor& parameter, double gain = 1);
void xavier_normal(const Tensor& parameter, double gain = 1);
// He et al., 2015, for relu: gain sqrt(2).
void kaiming_uniform(const Tensor& parameter, double gain = 1.4142135623730951);
void kaiming_normal(const Tensor& parameter, double gain = 1.4142135623730951);

}  // namespace prism::nn::init

#pragma GCC visibility pop
