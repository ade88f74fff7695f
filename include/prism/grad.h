// Automatic differentiation. Gradients are nodes of the same graph, so they are planned and fused
// like other ops.
//
//   Tensor w = randn({3, 4}), x = randn({4, 2}), y = zeros({3, 2});
//   auto loss = [&](std::span<const Tensor> in) { return mean(square(matmul(in[0], x) - y)); };
//   auto [value, gradients] = value_and_grad(loss)({w});
//
// or, as in PyTorch:
//
//   Tensor w = randn({3, 4}).set_requires_grad();
//   Tensor loss = w.square().mean();
//   loss.backward();
//   {
//     const NoGrad update;
//     w -= 0.1 * w.grad();
//   }
//   w.zero_grad();
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// The gradients of output with respect to each input. output has one element, unless seed gives the
// gradient to start from. An input that output does not depend on gets zeros. Throws
// kInvalidArgument for inputs that are not floats, kNotSupported for ops without a gradient.
std::vector<Tensor> gradients(const Tensor& output, std::span<const Tensor> inputs,
                              const Tensor& seed = {});
std::vector<Tensor> gradients(const Tensor& output, std::initializer_list<Tensor> inputs,
                              const Tensor& seed = {});

using TensorFunction = std::function<Tensor(std::span<const Tensor>)>;
struct ValueAndGrad {
  Tensor value;
  std::vector<Tensor> gradients;  // one for each input
};

// A function of tensors that is called with a span or with braces.
template <class Result>
class DerivedFunction {
 public:
  explicit DerivedFunction(std::function<Result(std::span<const Tensor>)> f) : f_(std::move(f)) {}
  Result operator()(std::span<const Tensor> inputs) const { return f_(inputs); }
  Result operator()(std::initializer_list<Tensor> inputs) const {
    return f_(std::span<const Tensor>(inputs.begin(), inputs.size()));
  }

 private:
  std::function<Result(std::span<const Tensor>)> f_;
};

// Functions that compute the gradients of f with respect to all its inputs. They can be
// differentiated again.
DerivedFunction<std::vector<Tensor>> grad(TensorFunction f);
DerivedFunction<ValueAndGrad> value_and_grad(TensorFunction f);

// f(inputs), without keeping what f makes on the way for the gradient: that computes it again from
// the inputs. The numbers are the same, it takes less memory and one more forward pass through f.
//
//   Tensor w = randn({4, 4}), x = randn({2, 4});
//   auto layer = [&](std::span<const Tensor> in) { return tanh(matmul(in[0], w)); };
//   Tensor y = recompute(layer, {x});
Tensor recompute(const TensorFunction& f, std::span<const Tensor> inputs);
Tensor recompute(const TensorFunction& f, std::initializer_list<Tensor> inputs);

// Adds the gradients of a loss to grad() of every tensor that it depends on and that requires
// gradients. loss.backward() does the same.
void backward(const Tensor& loss);

}  // namespace prism

#pragma GCC visibility pop
