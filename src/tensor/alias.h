// A tensor under another node: the same memory, but later in the plan.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensor/op.h"

namespace prism {

// The first input, not before the other inputs are there. The planner emits no step for it.
class AliasOp : public Op {
 public:
  std::string_view name() const override { return "alias"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    return {{inputs[0].shape(), inputs[0].type()}};
  }
  std::vector<Tensor> gradient(const GradientCall& call) const override {
    std::vector<Tensor> results(call.inputs.size());
    results[0] = call.output_gradients[0];
    return results;
  }
  void run_cpu(const CpuCall&) const override {}  // not called
  void launch(DeviceCall&) const override {}
};

// The input, with a sentence for plan.explain(): why it is computed in this way.
class NotedOp : public AliasOp {
 public:
  explicit NotedOp(std::string note) : note_(std::move(note)) {}
  const std::string& note() const { return note_; }

 private:
  std::string note_;
};

// While it lives, collects the nodes that this thread makes, in the order in which it makes them.
class RecordedNodes {
 public:
  RecordedNodes();
  ~RecordedNodes();
  RecordedNodes(const RecordedNodes&) = delete;
  RecordedNodes& operator=(const RecordedNodes&) = delete;

  static void add(const std::shared_ptr<Node>& node);
  std::vector<std::shared_ptr<Node>> nodes;

 private:
  RecordedNodes* before_;
};

}  // namespace prism
