// compile(f): a function of tensors whose plan is made once for each set of shapes, then replayed.
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

// What a plan takes of one device: bytes, as the pool gives them.
struct PlanMemory {
  Device device;
  uint64_t temporaries = 0;  // one arena
  uint64_t outputs = 0;      // values it makes that stay, and what stays zero
  uint64_t inputs = 0;       // memory of its own for what run() is given
  uint64_t present = 0;      // values that are there before: weights, caches
  uint64_t needed() const { return temporaries + outputs + inputs; }
};

// What eval() of these would take, without taking it.
std::vector<PlanMemory> estimate_memory(std::span<const Tensor> tensors);

class Plan;  // the work, made ready for devices

using TensorsFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

// f is called once for each new set of shapes, types and devices of its inputs; after that only
// the work it described is done again. So everything that changes between calls must be an input:
// what f reads from elsewhere is a constant of the plan.
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
  // The plan for inputs like these, made if there is none yet.
  Plan& plan(std::span<const Tensor> inputs);
  // Its steps as text: op, device, shapes, bytes, time; and what runs elsewhere, with the reason.
  std::string explain(std::span<const Tensor> inputs);
  // What calls with inputs like these take, weights and caches that f captured apart: without
  // making the plan where there is none yet. The inputs need no values (see without_values).
  std::vector<PlanMemory> estimate_memory(std::span<const Tensor> inputs);
  size_t plans() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

CompiledFunction compile(TensorsFunction f);

}  // namespace prism

#pragma GCC visibility pop
