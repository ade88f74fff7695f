// compile(f): plans a function of tensors once for each set of shapes, then replays the plan.
//
//   CompiledFunction f = compile([](std::span<const Tensor> in) {
//     return std::vector<Tensor>{softmax(matmul(in[0], in[1]))};
//   });
//   Tensor y = f({randn({2, 8}), randn({8, 8})})[0];
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// The memory that a plan needs on one device, in bytes as the pool allocates them.
struct PlanMemory {
  Device device;
  uint64_t temporaries = 0;  // one arena
  uint64_t outputs = 0;      // results and constants, which outlive the run
  uint64_t inputs = 0;       // copies of the inputs of run()
  uint64_t present = 0;      // already allocated values: weights, caches
  uint64_t needed() const { return temporaries + outputs + inputs; }
};

// The memory that eval() of these tensors would need.
std::vector<PlanMemory> estimate_memory(std::span<const Tensor> tensors);

class Plan;  // the recorded steps

using TensorsFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

// Calls f once for each new set of shapes, types and devices of the inputs; later calls replay the
// plan. Everything that changes between calls must be an input: other values that f reads become
// constants of the plan.
class CompiledFunction {
 public:
  explicit CompiledFunction(TensorsFunction f);
  ~CompiledFunction();
  CompiledFunction(CompiledFunction&&) noexcept;
  CompiledFunction& operator=(CompiledFunction&&) noexcept;

  std::vector<Tensor> operator()(std::span<const Tensor> inputs);
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs) {
    return (*this)(std::span<const Tensor>(inputs.begin(), inputs.size()));
  }
  // The plan for these inputs; makes it if there is none yet.
  Plan& plan(std::span<const Tensor> inputs);
  // The steps as text: op, device, shapes, bytes, time; fallbacks to the CPU with their reason.
  std::string explain(std::span<const Tensor> inputs);
  // The memory that calls with these inputs need; weights and caches that f captured count as
  // present. Makes no plan. The inputs need no values (without_values).
  std::vector<PlanMemory> estimate_memory(std::span<const Tensor> inputs);
  size_t plans() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

CompiledFunction compile(TensorsFunction f);

}  // namespace prism

#pragma GCC visibility pop
