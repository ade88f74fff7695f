// Merges ops into one step: an op with its producer, ops of one kind side by side, and a consumer
// with such a merged step.
#include <algorithm>
#include <unordered_map>

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
  // Results that an op can only take from one joint step are merged among themselves.
  std::unordered_map<const Node*, const Item*> taker_of;
  for (const Item& item : items_)
    if (!item.dropped && dynamic_cast<const JoinsJoint*>(item.op.get()))
      for (const Tensor& input : item.inputs) taker_of[input.node().get()] = &item;
  struct Candidate {
    size_t place;
    const JoinsAlike* op;
    const Item* taker;
  };
  std::vector<Candidate> candidates;  // first to last
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    const auto* op = dynamic_cast<const JoinsAlike*>(item.op.get());
    if (!op || item.dropped || item.node->device.info().is_cpu || item.inputs.empty() ||
        item.node->outputs.size() != 1 || wanted_.contains({item.node, 0}))
      continue;
    const auto taker = taker_of.find(item.node);
    candidates.push_back({i, op, taker == taker_of.end() ? nullptr : taker->second});
  }
  // Whether what an item needs is there when item `first` runs. made_by: merged nodes are made by
  // the step that stands at the first of them.
  std::unordered_map<const Node*, size_t> made_by;
  const auto is_there = [&](const Item& item, size_t first) {
    return std::ranges::none_of(item.inputs, [&](const Tensor& input) {
      const Node* node = input.node().get();
      if (const auto merged = made_by.find(node); merged != made_by.end())
        return merged->second >= first;
      const auto found = item_of_.find(node);
      return found != item_of_.end() && found->second >= first;
    });
  };
  const auto have_same_input = [](const Item& a, const Item& b) {
    const Tensor &x = a.inputs[0], &y = b.inputs[0];
    return x.node() == y.node() && x.output() == y.output() && x.layout() == y.layout();
  };
  // Ops with other inputs are looked for among so many that follow: those further on mostly need
  // results of the ops between.
  constexpr size_t kNear = 16;
  for (size_t c = 0; c < candidates.size(); ++c) {
    const auto& [first, op, taker] = candidates[c];
    if (items_[first].dropped) continue;
    const Device& device = items_[first].node->device;
    std::vector<size_t> taken = {first};
    std::vector<OpUse> uses = {{*items_[first].op, items_[first].inputs}};
    std::optional<Joint> joint;
    for (size_t n = c + 1; n < candidates.size(); ++n) {
      const Item& item = items_[candidates[n].place];
      if (item.dropped || candidates[n].taker != taker || item.node->device != device) continue;
      if (!have_same_input(item, items_[first]) &&
          (taker || n - c > kNear || !op->joins_other_inputs() ||
           !candidates[n].op->joins_other_inputs()))
        continue;
      if (!is_there(item, first)) continue;
      uses.push_back({*item.op, item.inputs});
      if (auto more = op->beside(device, uses)) {
        joint = std::move(more);
        taken.push_back(candidates[n].place);
      } else {
        uses.pop_back();
      }
    }
    if (!joint) continue;
    auto node = std::make_shared<Node>();
    node->op = joint->op;
    node->device = device;
    Item all{node.get(), joint->op, std::move(joint->inputs)};
    for (const size_t place : taken) {
      Item& item = items_[place];
      node->outputs.push_back(item.node->outputs[0]);
      all.stands_for.push_back(item.node);
      made_by[item.node] = first;
      all.apart.push_back(item);
      item.dropped = true;
    }
    joint_nodes_.push_back(std::move(node));
    items_[first] = std::move(all);
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
