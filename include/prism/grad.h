// Automatic differentiation: gradients are further nodes of the same graph, planned and fused like
// all others.
//
//   auto loss = [](std::span<const Tensor> in) { return mean(square(matmul(in[0], in[1]) - y)); };
//   auto [value, gradients] = value_and_grad(loss)({w, x});
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// Of output, which has one element unless seed gives the gradient to start from, by each input. An
// input that output does not depend on gets zeros. Throws kInvalidArgument for inputs that are not
// floats, kNotSupported naming an op without a gradient on the way.
std::vector<Tensor> gradients(const Tensor& output, std::span<const Tensor> inputs,
                              const Tensor& seed = {});

using TensorFunction = std::function<Tensor(std::span<const Tensor>)>;
struct ValueAndGrad {
  Tensor value;
  std::vector<Tensor> gradients;  // one an input
};

// Functions that give the gradients of f by all its inputs. They can be differentiated again.
std::function<std::vector<Tensor>(std::span<const Tensor>)> grad(TensorFunction f);
std::function<ValueAndGrad(std::span<const Tensor>)> value_and_grad(TensorFunction f);

// Adds the gradients of a loss to those of every tensor it depends on that asked for them with
// set_requires_grad().
void backward(const Tensor& loss);
Tensor gathered_gradient(const Tensor& leaf);  // empty before the first backward()
void clear_gradient(const Tensor& leaf);

}  // namespace prism

#pragma GCC visibility pop
