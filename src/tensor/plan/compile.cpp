// Compiled functions: tracing a function to a plan for each set of input shapes, and running it.
#include "prism/compile.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "prism/error.h"
#include "runtime/fallback.h"
#include "tensor/chain/chain_op.h"
#include "tensor/plan/device_fallback.h"
#include "tensor/plan/plan.h"

namespace prism {

namespace {

Tensor stand_in(const Tensor& like) {
  Tensor result = empty(like.shape(), like.type(), like.device());
  result.node()->is_input = true;
  result.node()->requires_grad = like.requires_grad();
  return result;
}

// The memory that the graph changes in place: weights of a training step, caches.
std::unordered_set<const Storage*> changed_memory(std::span<const Tensor> outputs) {
  std::unordered_set<const Storage*> changed;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* node) {
    if (!node->is_evaluated() && seen.insert(node).second) open.push_back(node);
  };
  for (const Tensor& output : outputs)
    if (output) visit(output.node().get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Tensor& input : node->inputs) visit(input.node().get());
    for (uint32_t i = 0; node->op && i < node->op->changed_inputs(); ++i)
      changed.insert(node->inputs[i].node()->storage[node->inputs[i].output()].get());
  }
  return changed;
}

// Quantised weights unpacked on a device with kernels: they need up to eight times the memory of
// the packed ones, and unpacking them again takes a fraction of the time of their product.
bool is_unpacked_weight(const Node& node) {
  return !node.device.info().is_cpu && node.inputs.size() == 1 && node.inputs[0].type().is_block();
}

// Returns the inner nodes that depend on no input, on no memory that the plan changes and on no
// parameter, which an optimiser changes between runs: they are computed once and not at each run.
// Nodes without inputs (zeros, arange) and unpacked weights stay in the plan: recomputing them is
// cheaper than storing them.
std::vector<Tensor> constants_of(std::span<const Tensor> outputs) {
  const std::unordered_set<const Storage*> changed = changed_memory(outputs);
  std::unordered_map<const Node*, bool> varies;
  std::vector<Tensor> constants;
  std::vector<std::pair<std::shared_ptr<Node>, size_t>> open;
  for (const Tensor& output : outputs) {
    if (varies.try_emplace(output.node().get(), false).second) open.emplace_back(output.node(), 0);
    while (!open.empty()) {
      auto& [node, next] = open.back();
      if (!node->is_evaluated() && next < node->inputs.size()) {
        const std::shared_ptr<Node>& input = node->inputs[next++].node();
        if (varies.try_emplace(input.get(), false).second) open.emplace_back(input, 0);
        continue;
      }
      bool changes = node->is_input || (node->is_evaluated() && node->requires_grad);
      for (const auto& storage : node->storage)
        changes = changes || changed.contains(storage.get());
      if (!node->is_evaluated())
        for (const Tensor& input : node->inputs) changes = changes || varies[input.node().get()];
      varies[node.get()] = changes;
      if (changes && !node->is_evaluated()) {
        for (const Tensor& input : node->inputs)
          if (!varies[input.node().get()] && !input.node()->inputs.empty() &&
              !is_unpacked_weight(*input.node()))
            constants.emplace_back(input.node(), input.output());
      }
      open.pop_back();
    }
  }
  return constants;
}

std::string key_of(std::span<const Tensor> inputs) {
  std::string key;
  for (const Tensor& each : inputs) {
    if (!each)
      throw Error(ErrorCode::kInvalidArgument, "compiled function: an input is an empty Tensor");
    key += fmt::format("{}{}@{};", each.type().name(), each.shape().text(), each.device().id());
  }
  return key;
}

}  // namespace

struct CompiledFunction::State {
  struct Entry {
    std::vector<Tensor> inputs;   // stand-ins for the inputs of a call
    std::vector<Tensor> outputs;  // as f returned them
    std::unique_ptr<Plan> plan;
  };
  Entry& entry(std::span<const Tensor> inputs);
  std::vector<Tensor> run_once(std::span<const Tensor> inputs);

  TensorsFunction f_;
  std::map<std::string, Entry> entries_;
};

CompiledFunction compile(TensorsFunction f) { return CompiledFunction(std::move(f)); }

CompiledFunction::CompiledFunction(TensorsFunction f) : state_(std::make_unique<State>()) {
  state_->f_ = std::move(f);
}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(CompiledFunction&&) noexcept = default;
CompiledFunction& CompiledFunction::operator=(CompiledFunction&&) noexcept = default;

size_t CompiledFunction::plans() const { return state_->entries_.size(); }

std::string CompiledFunction::explain(std::span<const Tensor> inputs) {
  return plan(inputs).explain();
}

CompiledFunction::State::Entry& CompiledFunction::State::entry(std::span<const Tensor> inputs) {
  const std::string key = key_of(inputs);
  if (const auto known = entries_.find(key); known != entries_.end()) {
    if (!known->second.plan->is_outdated()) return known->second;
    entries_.erase(known);
  }
  Entry& entry = entries_[key];
  try {
    for (const Tensor& each : inputs) entry.inputs.push_back(stand_in(each));
    entry.outputs = f_(entry.inputs);
    for (Tensor& each : entry.outputs)  // an input returned as an output gets its own copy
      if (each && each.is_evaluated()) each = copied(each);
    eval(constants_of(entry.outputs));
    entry.plan = std::make_unique<Plan>(entry.outputs, entry.inputs);
  } catch (...) {
    entries_.erase(key);
    throw;
  }
  if (const std::string now = key_of(inputs); now != key) {  // tracing replaced a device
    auto moved = entries_.extract(key);
    moved.key() = now;
    entries_.erase(now);
    return entries_.insert(std::move(moved)).position->second;
  }
  return entry;
}

Plan& CompiledFunction::plan(std::span<const Tensor> inputs) {
  return *with_fallback([&] { return state_->entry(inputs).plan.get(); });
}

std::vector<PlanMemory> CompiledFunction::estimate_memory(std::span<const Tensor> inputs) {
  if (const auto known = state_->entries_.find(key_of(inputs)); known != state_->entries_.end())
    return known->second.plan->memory();
  std::vector<Tensor> stand_ins;
  for (const Tensor& each : inputs) {
    stand_ins.push_back(without_values(each.shape(), each.type(), each.device()));
    stand_ins.back().node()->is_input = true;
  }
  std::vector<Tensor> outputs = state_->f_(stand_ins);
  for (Tensor& each : outputs)
    if (each && each.is_evaluated()) each = copied(each);
  // Constants stay allocated, like outputs.
  const std::vector<Tensor> constants = constants_of(outputs);
  outputs.insert(outputs.end(), constants.begin(), constants.end());
  return Plan(outputs, stand_ins, {.allocate = false}).memory();
}

std::vector<Tensor> CompiledFunction::operator()(std::span<const Tensor> inputs) {
  return with_fallback([&] { return state_->run_once(inputs); });
}

std::vector<Tensor> CompiledFunction::State::run_once(std::span<const Tensor> inputs) {
  Entry& known = entry(inputs);
  std::vector<Tensor> ready;
  for (const Tensor& each : inputs) ready.push_back(each.contiguous());
  eval(ready);
  std::vector<std::shared_ptr<Storage>> storages;
  for (const Tensor& each : ready) {
    if (each.layout().offset != 0) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("compiled function: an input of type {} is a slice; pass the whole "
                              "tensor",
                              each.type().name()));
    }
    storages.push_back(values_of(each));
  }
  // Evaluating the inputs may have replaced a failed device.
  if (known.plan->is_outdated()) return run_once(inputs);
  for (size_t i = 0; i < known.outputs.size(); ++i) known.plan->release_output(i);
  known.plan->run_and_sync(storages);
  std::vector<Tensor> results;
  for (size_t i = 0; i < known.outputs.size(); ++i) {
    const Tensor& traced = known.outputs[i];
    auto node = std::make_shared<Node>();
    node->outputs = {traced.node()->outputs[traced.output()]};
    node->device = traced.device();
    node->storage = {known.plan->output(i)};
    results.emplace_back(std::move(node), 0, traced.layout());
  }
  return results;
}

}  // namespace prism
