// Merges an op with the preprocessing that its consumers need.
#include "tensor/plan/planner.h"
#include "tensor/plan/preparation.h"

namespace prism {

void Planner::join_prepared() {
  const auto used_beside = [&](const Node* node, const Item& prepare) {
    for (const Item& item : items_) {
      if (item.dropped || &item == &prepare) continue;
      for (const Tensor& input : item.inputs)
        if (input.node().get() == node) return true;
    }
    return false;
  };
  for (Item& item : items_) {
    if (item.dropped || !item.prepares || item.node->device.info().is_cpu) continue;
    const Tensor& input = item.inputs[0];
    Node* const node = input.node().get();
    const auto found = item_of_.find(node);
    if (found == item_of_.end() || wanted_.contains({node, 0}) || !lies_as_made(input)) continue;
    Item& maker = items_[found->second];
    const auto* op = dynamic_cast<const MakesPrepared*>(maker.op.get());
    // An item that was joined with others of its kind stands for other nodes.
    if (!op || maker.dropped || maker.node != node || node->device != item.node->device ||
        maker.op->cannot_run(node->device.info(), maker.inputs))
      continue;
    const bool kept = used_beside(node, item);
    auto both = op->with_prepared(node->device, maker.inputs, *item.op, input.shape(), kept);
    if (!both) continue;
    auto joint = std::make_shared<Node>();
    joint->op = both;
    joint->device = node->device;
    Item all{joint.get(), std::move(both), maker.inputs};
    all.unkept = !kept;
    all.apart = {maker, item};
    if (kept) all.stands_for.push_back(node);
    all.stands_for.push_back(item.node);
    for (const Node* each : all.stands_for) joint->outputs.push_back(each->outputs[0]);
    joint_nodes_.push_back(std::move(joint));
    item.dropped = true;
    maker = std::move(all);
  }
}

// Nobody takes over the inputs of what may have to be made after all.
void Planner::hold_unkept() {
  for (const Item& item : items_) {
    if (item.dropped || !item.unkept) continue;
    for (const Tensor& input : item.inputs) uses_[input.node().get()] += kAlwaysUsed;
  }
}

// An op that is done alone after all reads what the plan would not have kept.
void Planner::emit_unkept(const Item& item) {
  for (const Tensor& input : item.inputs) {
    if (input.node()->is_evaluated() || slot_of_.contains({input.node().get(), input.output()}))
      continue;
    for (const Item& each : items_)
      if (each.unkept && each.apart[0].node == input.node().get()) {
        Item maker = each.apart[0];
        emit(maker);
        break;
      }
  }
}

}  // namespace prism
