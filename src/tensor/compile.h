// compile(f): a function of tensors whose plan is made once for each set of shapes, then replayed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/plan.h"
#include "tensor/tensor.h"

namespace prism {

using TensorsFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

// f is called once for each new set of shapes, types and devices of its inputs; after that only
// the work it described is done again. So everything that changes between calls must be an input:
// what f reads from elsewhere is a constant of the plan.
class CompiledFunction {
 public:
  explicit CompiledFunction(TensorsFunction f) : f_(std::move(f)) {}

  std::vector<Tensor> operator()(std::span<const Tensor> inputs);
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs) {
    return (*this)(std::span<const Tensor>(inputs.begin(), inputs.size()));
  }
  // The plan for inputs like these, made if there is none yet.
  Plan& plan(std::span<const Tensor> inputs);
  // What calls with inputs like these take, weights and caches that f captured apart: without
  // making the plan where there is none yet. The inputs need no values (see without_values).
  std::vector<PlanMemory> estimate_memory(std::span<const Tensor> inputs);
  size_t plans() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<Tensor> inputs;   // stand-ins for those of a call
    std::vector<Tensor> outputs;  // as f gave them
    std::unique_ptr<Plan> plan;
  };
  Entry& entry(std::span<const Tensor> inputs);
  std::vector<Tensor> run_once(std::span<const Tensor> inputs);

  TensorsFunction f_;
  std::map<std::string, Entry> entries_;
};

CompiledFunction compile(TensorsFunction f);

}  // namespace prism
