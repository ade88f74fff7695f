// Fuses elementwise chains with each other and with the ops before and after them.
#include <algorithm>
#include <functional>

#include "tensor/chain/chain_op.h"
#include "tensor/plan/planner.h"

namespace prism {

namespace {

const ChainOp* as_chain(const std::shared_ptr<const Op>& op) {
  return dynamic_cast<const ChainOp*>(op.get());
}

// One input where the same tensor is given twice. Calls left_out for each that is left out.
void merge_equal_inputs(Chain& chain, std::vector<Tensor>& inputs,
                        const std::function<void(const Tensor&)>& left_out) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t j = inputs.size(); j-- > i + 1;) {
      if (inputs[i].node() != inputs[j].node() || inputs[i].output() != inputs[j].output() ||
          !(inputs[i].layout() == inputs[j].layout()))
        continue;
      left_out(inputs[j]);
      inputs.erase(inputs.begin() + static_cast<ptrdiff_t>(j));
      chain.inputs.erase(chain.inputs.begin() + static_cast<ptrdiff_t>(j));
      for (Chain::Step& step : chain.steps) {
        if (step.kind != Chain::Kind::input) continue;
        if (step.index == j)
          step.index = static_cast<uint16_t>(i);
        else if (step.index > j)
          --step.index;
      }
    }
  }
}

bool fits(const Chain& chain, std::span<const Tensor> inputs, const Shape& shape) {
  std::vector<Layout> layouts;
  for (const Tensor& each : inputs) layouts.push_back(each.layout());
  return chain_fits(chain, layouts, shape);
}

// Whether an input reads the memory of `target` in another order than element by element. Such a
// read must be complete before the target is overwritten.
bool reads_otherwise(std::span<const Tensor> inputs, const Tensor& target) {
  return std::ranges::any_of(inputs, [&](const Tensor& each) {
    if (!each.is_evaluated() ||
        each.node()->storage[each.output()] != target.node()->storage[target.output()])
      return false;
    return each.node() != target.node() || !(each.layout() == target.layout());
  });
}

}  // namespace

void Planner::fuse() {
  for (Item& item : items_) {
    while (join_chains(item)) {
    }
    if (const ChainOp* op = as_chain(item.op)) {
      Chain chain = simplified(op->chain());
      merge_equal_inputs(chain, item.inputs,
                         [&](const Tensor& input) { --uses_[input.node().get()]; });
      item.op =
          std::make_shared<ChainOp>(std::move(chain), item.node->outputs[0].shape, op->in_place());
      while (join_epilogue(item)) {
      }
    } else {
      while (join_prologue(item)) {
      }
    }
  }
}

// Whether it is all of its node's only output, maybe under another shape.
bool Planner::lies_as_made(const Tensor& input) {
  const Node& node = *input.node();
  return node.outputs.size() == 1 && input.layout().offset == 0 && input.layout().is_dense() &&
         input.elements() == node.outputs[0].shape.elements();
}

// The item that makes this input, if only so many use it and its layout is the one it was made in.
Planner::Item* Planner::sole_maker(const Tensor& input, uint32_t users) {
  const Node* node = input.node().get();
  const auto found = item_of_.find(node);
  if (found == item_of_.end() || uses_[node] != users || !lies_as_made(input)) return nullptr;
  Item& producer = items_[found->second];
  return producer.dropped ? nullptr : &producer;
}

// The same with the shape that it was made with, which is the given one.
Planner::Item* Planner::sole_producer(const Tensor& input, const Shape& shape) {
  if (!(input.shape() == shape) || !(shape == input.node()->outputs[input.output()].shape))
    return nullptr;
  return sole_maker(input);
}

bool Planner::join_chains(Item& item) {
  const ChainOp* op = as_chain(item.op);
  if (!op) return false;
  const Shape& shape = item.node->outputs[0].shape;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    const Tensor input = item.inputs[i];
    // A chain of numbers alone may be of any shape: it broadcasts as well before as after.
    Item* producer = sole_producer(input, input.shape());
    if (!producer || producer->node->device != item.node->device) continue;
    const ChainOp* before = as_chain(producer->op);
    if (!before || before->in_place()) continue;
    if (!(input.shape() == shape) && !producer->inputs.empty()) continue;
    if (op->in_place() && reads_otherwise(producer->inputs, item.inputs[0])) continue;
    Chain chain = joined(op->chain(), i, before->chain());
    std::vector<Tensor> inputs;
    for (size_t n = 0; n < item.inputs.size(); ++n)
      if (n != i) inputs.push_back(item.inputs[n]);
    inputs.insert(inputs.end(), producer->inputs.begin(), producer->inputs.end());
    std::vector<const Node*> fewer_uses;
    merge_equal_inputs(chain, inputs,
                       [&](const Tensor& each) { fewer_uses.push_back(each.node().get()); });
    if (!fits(chain, inputs, shape)) continue;
    for (const Node* node : fewer_uses) --uses_[node];
    item.op = std::make_shared<ChainOp>(std::move(chain), shape, op->in_place());
    item.inputs = std::move(inputs);
    producer->dropped = true;
    return true;
  }
  return false;
}

bool Planner::join_epilogue(Item& item) {
  const ChainOp* op = as_chain(item.op);
  if (!op || op->in_place()) return false;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    const Tensor& input = item.inputs[i];
    if (!(input.shape() == item.node->outputs[0].shape)) continue;
    Item* producer = sole_maker(input);
    if (!producer || producer->node->device != item.node->device || as_chain(producer->op))
      continue;
    // An epilogue that the producer already has broadcasts its inputs to the producer's shape.
    if (as_chain(producer->node->op) && !(input.shape() == producer->node->outputs[0].shape))
      continue;
    const auto both = producer->op->with_epilogue(op->chain(), i);
    if (!both) continue;
    std::vector<Tensor> inputs = producer->inputs;
    for (size_t n = 0; n < item.inputs.size(); ++n)
      if (n != i) inputs.push_back(item.inputs[n]);
    item.op = both;
    item.inputs = std::move(inputs);
    producer->dropped = true;
    return true;
  }
  return false;
}

bool Planner::join_prologue(Item& item) {
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    Item* producer = sole_producer(item.inputs[i], item.inputs[i].shape());
    if (!producer || producer->node->device != item.node->device) continue;
    const ChainOp* before = as_chain(producer->op);
    if (!before || before->in_place()) continue;
    const auto both = item.op->with_prologue(i, before->chain());
    if (!both) continue;
    const auto place = item.inputs.erase(item.inputs.begin() + static_cast<ptrdiff_t>(i));
    item.inputs.insert(place, producer->inputs.begin(), producer->inputs.end());
    item.op = both;
    producer->dropped = true;
    return true;
  }
  return false;
}

}  // namespace prism
