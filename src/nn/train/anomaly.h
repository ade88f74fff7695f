// Finds where a value that is not finite began, and leaves out the update of such a step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/train/step_context.h"

namespace prism::nn {

struct Anomaly {
  int64_t step = 0;
  double loss = 0, norm = 0;  // norm: of the gradients
};

// Repeats the step's forward pass layer by layer, then its backward pass, and throws an error that
// names the step and the first layer or parameter with a value that is not finite.
[[noreturn]] void throw_anomaly(const Anomaly& found,
                                const std::function<Tensor(std::span<const Tensor>)>& loss,
                                std::span<const Tensor> batch, StepContext& context, Module* model,
                                std::span<const Tensor> parameters);

// b1 []: whether all these numbers are finite.
Tensor are_finite(std::span<const Tensor> numbers);

}  // namespace prism::nn
