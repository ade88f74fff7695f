// A training step as one plan: forward pass, backward pass, clipping and update, replayed.
//
//   nn::Linear model(784, 10);
//   const Tensor images = zeros({128, 784}), labels = zeros({128}, DType::i32);
//   nn::AdamW optimizer(model.parameters(), {.lr = 1e-3});
//   nn::TrainStep step(optimizer, [&](std::span<const Tensor> batch) {
//     return nn::cross_entropy(model(batch[0]), batch[1]);
//   });
//   Tensor loss = step({images, labels});
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/compile.h"
#include "prism/nn/optimizer.h"
#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism::nn {

class Module;

struct TrainStepOptions {
  double clip_norm = 0;   // the largest norm of all gradients together; 0: no limit
  double clip_value = 0;  // the largest size of an element of a gradient; 0: no limit
  int accumulate = 1;     // batches whose mean gradient makes one update
  uint64_t seed = 0;      // of dropout
  // The type in which Linear and SelfAttention compute: f32, bf16 or f16. Parameters, their
  // updates, norms and losses stay in f32. With f16 the loss is scaled so that small gradients
  // survive; a step whose gradients overflow halves the scale and leaves the parameters as they
  // are.
  DType compute = DType::f32;
  MovingAverage* average = nullptr;  // updated with the parameters
  // Checks every loss and gradient. If one is not finite, the update is left out and the call
  // throws kInvalidArgument, naming the step and the first layer of `model` that made one.
  bool detect_anomaly = false;
  Module* model = nullptr;
};

// The function is recorded once for each set of shapes of the batch. Everything that changes
// between steps must be in the batch; parameters, buffers and the learning rate may change, too.
// Parameters are updated in place. The optimisers, the average and the model must outlive the step.
class TrainStep {
 public:
  using Loss = std::function<Tensor(std::span<const Tensor> batch)>;
  TrainStep(Optimizer& optimizer, Loss loss, TrainStepOptions options = {});
  TrainStep(std::vector<Optimizer*> optimizers, Loss loss, TrainStepOptions options = {});
  ~TrainStep();
  TrainStep(TrainStep&&) noexcept;

  // The loss before the update, f32 []; not waited for until it is read, unless detect_anomaly. The
  // function must return one finite number for each batch.
  Tensor operator()(std::span<const Tensor> batch);
  Tensor operator()(std::initializer_list<Tensor> batch) {
    return (*this)(std::span<const Tensor>(batch.begin(), batch.size()));
  }
  // The norm of the gradients of the last update before clipping; empty without clip_norm.
  const Tensor& gradient_norm() const;
  int64_t batches() const;  // done so far
  // The number of batches, which determines dropout, and the sums of an unfinished accumulation.
  std::map<std::string, Tensor> state_dict() const;
  void load_state_dict(const std::map<std::string, Tensor>& state);
  // The memory that steps with such batches need beside parameters and the optimiser's state, which
  // count as present. Makes no plan.
  std::vector<PlanMemory> estimate_memory(std::span<const Tensor> batch);
  // The plan's steps as text (CompiledFunction::explain), and the number of plans made.
  std::string explain(std::span<const Tensor> batch);
  size_t plans() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::nn

#pragma GCC visibility pop
