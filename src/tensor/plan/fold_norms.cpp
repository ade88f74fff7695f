// Folds norms between two products into these products.
#include <algorithm>

#include "prism/error.h"
#include "tensor/plan/planner.h"
#include "tensor/plan/unscaled_rows.h"

namespace prism {

// Whether its device takes all kernels of an op: what is compiled here is kept for the launches.
bool Planner::surely_runs(const Item& item) {
  const Device& device = item.node->device;
  if (item.op->cannot_run(device.info(), item.inputs)) return false;
  uint32_t slot = 0;
  std::vector<DeviceView> from, to;
  for (const Tensor& each : item.inputs) {
    if (!item.op->takes_layout(from.size(), each, device.info())) return false;
    from.push_back({slot++, each.type(), each.layout()});
  }
  for (const Spec& each : item.node->outputs)
    to.push_back({slot++, each.type, Layout::dense(each.shape)});
  try {
    DeviceCall call(device, from, to, [&](uint64_t) { return slot++; });
    item.op->launch(call);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotSupported) return false;
    throw;
  }
  return true;
}

void Planner::fold_norms() {
  for (Item& norm : items_) {
    const Device& device = norm.node->device;
    if (norm.dropped || device.info().is_cpu) continue;
    const auto* scales = dynamic_cast<const ScalesRows*>(norm.op.get());
    const auto scale = scales ? scales->row_scale(norm.inputs) : std::nullopt;
    if (!scale || norm.stands_for.size() != 1 || !scale->weight.node()->is_evaluated()) continue;
    const Tensor& x = norm.inputs[0];
    const auto found = item_of_.find(x.node().get());
    if (found == item_of_.end() || wanted_.contains({x.node().get(), 0}) || !lies_as_made(x))
      continue;
    Item& maker = items_[found->second];
    const auto* makes = dynamic_cast<const MakesUnscaled*>(maker.op.get());
    if (!makes || maker.dropped || maker.node != x.node().get() || maker.node->device != device)
      continue;
    auto joint = makes->with_unscaled(device, maker.inputs, x.shape(), *scale);
    if (!joint) continue;
    auto node = std::make_shared<Node>(), rows = std::make_shared<Node>();
    node->op = joint->op;
    node->outputs = joint->op->infer(joint->inputs);
    rows->outputs = {node->outputs[1]};
    node->device = rows->device = device;
    Item both{node.get(), std::move(joint->op), std::move(joint->inputs)};
    both.stands_for = {maker.node, rows.get()};
    if (!surely_runs(both)) continue;

    std::vector<std::pair<Item*, Item>> users;  // as they were, as they will be
    const bool all_take = std::ranges::all_of(items_, [&](Item& item) {
      if (item.dropped || std::ranges::none_of(item.inputs, [&](const Tensor& input) {
            return input.node().get() == norm.stands_for[0];
          }))
        return true;
      const auto* takes = dynamic_cast<const TakesUnscaled*>(item.op.get());
      auto op = takes ? takes->of_unscaled(scale->epsilon) : nullptr;
      if (!op || item.node->device != device) return false;
      Item user{item.node, std::move(op), item.inputs};
      for (Tensor& input : user.inputs)
        if (input.node().get() == norm.stands_for[0]) input = Tensor(rows, 0);
      user.stands_for = item.stands_for;
      if (!surely_runs(user)) return false;
      users.emplace_back(&item, std::move(user));
      return true;
    });
    if (!all_take) continue;

    for (auto& [item, user] : users) *item = std::move(user);
    joint_nodes_.push_back(std::move(node));
    joint_nodes_.push_back(std::move(rows));
    norm.dropped = true;
    maker = std::move(both);
  }
}

}  // namespace prism
