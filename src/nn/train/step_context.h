// What layers need to know of the step that is being recorded: random keys, changes, observers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prism/nn/module.h"
#include "prism/tensor.h"

namespace prism::nn {

struct StepContext {
  Tensor key;                   // i32 [2]: another for each step; an empty tensor outside of steps
  uint64_t draws = 0;           // streams of this key in use
  std::vector<Tensor> changes;  // assignments that belong to the step, such as running means
  DType compute = DType::f32;   // of products: see TrainStepOptions
  Tensor go_on;  // b1 []: false if the step's changes must be left out; empty: they never are
  std::function<void(const Layer&, const Tensor& output)> observe = {};
};

// The context of the step that this thread records; null outside of steps.
StepContext* step_context();

// A tensor in the type that the step computes in; itself outside of steps.
Tensor in_compute_type(const Tensor& x);

// Makes a context current during its lifetime.
class WithContext {
 public:
  explicit WithContext(StepContext& context);
  ~WithContext();
  WithContext(const WithContext&) = delete;

 private:
  StepContext* before_;
};

// An assignment, left out if the step's go_on is false.
Tensor change(const Tensor& target, const Tensor& value);

// Assigns now, or with the step that is being recorded.
void change_with_step(const Tensor& target, const Tensor& value);

// Names a part: "layers.2.attention".
std::string path_of(Module& root, const Module& part);

}  // namespace prism::nn
