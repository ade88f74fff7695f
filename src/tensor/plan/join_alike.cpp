// Merges ops into one step: an op with its producer, sibling ops over one input, and a consumer
// with such a merged step.
#include <map>
#include <tuple>

#include "tensor/plan/joint.h"
#include "tensor/plan/planner.h"

namespace prism {

void Planner::join_alike() {
  item_of_.clear();  // share() has put items between
  for (size_t i = 0; i < items_.size(); ++i) item_of_[items_[i].node] = i;
  count_uses();  // chains take an input once that they were given twice
  for (Item& item : items_)
    if (!item.dropped && !item.node->device.info().is_cpu) join_maker(item);
  join_siblings();
  for (Item& item : items_)
    if (!item.dropped && !item.node->device.info().is_cpu) join_joint(item);
}

void Planner::join_maker(Item& item) {
  const auto* op = dynamic_cast<const JoinsAlike*>(item.op.get());
  if (!op) return;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    Item* maker = sole_maker(item.inputs[i]);
    if (!maker || maker->node->device != item.node->device || !maker->apart.empty()) continue;
    auto joint = op->with_maker(item.node->device, item.inputs, i, {*maker->op, maker->inputs});
    if (!joint) continue;
    Item both{item.node, std::move(joint->op), std::move(joint->inputs)};
    both.apart = {*maker, item};
    maker->dropped = true;
    item = std::move(both);
    return;
  }
}

void Planner::join_siblings() {
  // By the first input: candidates, first to last.
  std::map<std::pair<const Node*, uint32_t>, std::vector<size_t>> candidates;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.dropped || item.node->device.info().is_cpu || item.inputs.empty() ||
        item.node->outputs.size() != 1 || wanted_.contains({item.node, 0}) ||
        !dynamic_cast<const JoinsAlike*>(item.op.get()))
      continue;
    candidates[{item.inputs[0].node().get(), item.inputs[0].output()}].push_back(i);
  }
  // What stands before item `first` is there when it runs.
  const auto is_there = [&](const Item& item, size_t first) {
    for (const Tensor& input : item.inputs)
      if (const auto found = item_of_.find(input.node().get());
          found != item_of_.end() && found->second >= first)
        return false;
    return true;
  };
  for (auto& [input, places] : candidates) {
    while (places.size() > 1) {
      const size_t first = places[0];
      const Device& device = items_[first].node->device;
      const auto* op = dynamic_cast<const JoinsAlike*>(items_[first].op.get());
      std::vector<size_t> taken = {first}, left;
      std::vector<OpUse> uses = {{*items_[first].op, items_[first].inputs}};
      std::optional<Joint> joint;
      for (size_t n = 1; n < places.size(); ++n) {
        const Item& item = items_[places[n]];
        uses.push_back({*item.op, item.inputs});
        auto more = item.node->device == device &&
                            item.inputs[0].layout() == items_[first].inputs[0].layout() &&
                            is_there(item, first)
                        ? op->beside(device, uses)
                        : std::nullopt;
        if (more) {
          joint = std::move(more);
          taken.push_back(places[n]);
        } else {
          uses.pop_back();
          left.push_back(places[n]);
        }
      }
      places = std::move(left);
      if (!joint) continue;
      auto node = std::make_shared<Node>();
      node->op = joint->op;
      node->device = device;
      Item all{node.get(), joint->op, std::move(joint->inputs)};
      for (const size_t place : taken) {
        Item& item = items_[place];
        node->outputs.push_back(item.node->outputs[0]);
        all.stands_for.push_back(item.node);
        all.apart.push_back(item);
        item.dropped = true;
      }
      joint_nodes_.push_back(std::move(node));
      items_[first] = std::move(all);
    }
  }
}

// An op and the joint step that makes several of its inputs, all for it alone.
void Planner::join_joint(Item& item) {
  const auto* op = dynamic_cast<const JoinsJoint*>(item.op.get());
  if (!op) return;
  for (Item& maker : items_) {
    if (maker.dropped || maker.stands_for.empty() || maker.node->device != item.node->device)
      continue;
    std::vector<size_t> made;
    for (const Node* node : maker.stands_for)
      for (size_t i = 0; i < item.inputs.size(); ++i)
        if (item.inputs[i].node().get() == node && uses_[node] == 1 && lies_as_made(item.inputs[i]))
          made.push_back(i);
    if (made.size() != maker.stands_for.size()) continue;
    auto joint = op->with_joint(item.node->device, item.inputs, made, {*maker.op, maker.inputs});
    if (!joint) continue;
    Item both{item.node, std::move(joint->op), std::move(joint->inputs)};
    both.apart = {maker, item};
    maker.dropped = true;
    item = std::move(both);
    return;
  }
}

}  // namespace prism
