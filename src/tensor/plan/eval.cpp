// Evaluates tensors: builds one plan for all of them and runs it once.
#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "runtime/fallback.h"
#include "tensor/plan/device_fallback.h"
#include "tensor/plan/plan.h"

namespace prism {

namespace {

std::recursive_mutex& eval_mutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

// An evaluated node needs its op and inputs only for gradients.
void keep_values(Node& node, std::vector<std::shared_ptr<Storage>> storage) {
  node.storage = std::move(storage);
  if (node.requires_grad) return;
  node.op = nullptr;
  // Free a long chain iteratively: recursive destructors would need stack as deep as the chain is
  // long.
  std::vector<Tensor> open = std::move(node.inputs);
  node.inputs.clear();
  while (!open.empty()) {
    Tensor last = std::move(open.back());
    open.pop_back();
    if (last.node().use_count() == 1 && !last.is_evaluated()) {
      auto& inputs = last.node()->inputs;
      open.insert(open.end(), std::make_move_iterator(inputs.begin()),
                  std::make_move_iterator(inputs.end()));
      inputs.clear();
    }
  }
}

// Returns all outputs of each node to evaluate, so that no node is computed twice.
std::vector<Tensor> wanted_of(std::span<const Tensor> tensors) {
  std::vector<Tensor> wanted;
  std::unordered_set<const Node*> seen;
  for (const Tensor& each : tensors) {
    if (each) bring_values(*each.node());
    if (!each || each.is_evaluated() || !seen.insert(each.node().get()).second) continue;
    for (uint32_t i = 0; i < each.node()->outputs.size(); ++i) wanted.emplace_back(each.node(), i);
  }
  return wanted;
}

void eval_once(std::span<const Tensor> tensors) {
  const std::vector<Tensor> wanted = wanted_of(tensors);
  if (wanted.empty()) return;
  Plan plan(wanted);
  plan.run_and_sync();
  for (size_t i = 0; i < wanted.size(); i += wanted[i].node()->outputs.size()) {
    Node& node = *wanted[i].node();
    std::vector<std::shared_ptr<Storage>> storage;
    for (size_t output = 0; output < node.outputs.size(); ++output)
      storage.push_back(plan.output(i + output));
    keep_values(node, std::move(storage));
  }
}

}  // namespace

void eval(std::span<const Tensor> tensors) {
  const std::scoped_lock lock(eval_mutex());
  with_fallback([&] { eval_once(tensors); });
}

std::vector<PlanMemory> estimate_memory(std::span<const Tensor> tensors) {
  const std::scoped_lock lock(eval_mutex());
  return Plan(wanted_of(tensors), {}, {.allocate = false}).memory();
}

void eval(std::initializer_list<Tensor> tensors) {
  eval(std::span<const Tensor>(tensors.begin(), tensors.size()));
}

const Tensor& Tensor::eval() const {
  prism::eval(std::span<const Tensor>(this, 1));
  return *this;
}

}  // namespace prism
