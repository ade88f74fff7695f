// What several ops of a plan make of one input before all else, made once for all of them.
#include "tensor/planner.h"
#include "tensor/preparation.h"

namespace prism {

namespace {

struct Shared {
  Tensor input;
  std::shared_ptr<const Op> prepare;
  std::vector<std::pair<size_t, Preparation>> users;  // items, first to last

  bool is_of(const Tensor& tensor, const Op& op) const {
    return input.node() == tensor.node() && input.output() == tensor.output() &&
           input.layout() == tensor.layout() && prepare->name() == op.name() &&
           prepare->attributes() == op.attributes();
  }
};

}  // namespace

void Planner::share() {
  std::vector<Shared> all;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    const Device& device = item.node->device;
    if (item.dropped) continue;
    const auto* op = dynamic_cast<const PreparesInput*>(item.op.get());
    auto preparation = op ? op->preparation(device, item.inputs) : std::nullopt;
    if (!preparation) continue;
    if (!device.info().is_cpu && item.op->cannot_run(device.info(), item.inputs)) continue;
    const Tensor& input = item.inputs[preparation->input];
    auto found = all.begin();
    while (found != all.end() && !found->is_of(input, *preparation->prepare)) ++found;
    if (found == all.end()) found = all.insert(found, Shared{input, preparation->prepare, {}});
    found->users.emplace_back(i, *std::move(preparation));
  }
  std::unordered_map<size_t, Item> before;  // to come before the item of that number
  for (const Shared& each : all) {
    if (each.users.size() < 2) continue;
    auto node = std::make_shared<Node>();
    node->op = each.prepare;
    node->inputs = {each.input};
    node->outputs = each.prepare->infer(node->inputs);
    node->device = each.input.device();
    uses_[node.get()] = static_cast<uint32_t>(each.users.size());
    before[each.users.front().first] = {node.get(), node->op, node->inputs};
    for (const auto& [number, preparation] : each.users) {
      Item& item = items_[number];
      item.alone = std::make_shared<Item>(item);
      item.op = preparation.rest;
      item.inputs[preparation.input] = Tensor(node, 0);
    }
  }
  if (before.empty()) return;
  std::vector<Item> items;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (const auto found = before.find(i); found != before.end()) items.push_back(found->second);
    items.push_back(std::move(items_[i]));
  }
  items_ = std::move(items);
}

}  // namespace prism
