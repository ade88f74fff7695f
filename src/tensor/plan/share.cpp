// Shares preprocessing of an input among the ops that need it: the input's producer does it if it
// can, otherwise a separate step.
#include "tensor/chain/chain_op.h"
#include "tensor/plan/planner.h"
#include "tensor/plan/preparation.h"

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

// An element function that all users of an input begin with, done as the input is made: the node of
// what is made instead of it. Null where its maker cannot.
std::shared_ptr<Node> Planner::made_prepared(const Tensor& input, const Op& prepare,
                                             uint32_t users) {
  const auto* function = dynamic_cast<const ChainOp*>(&prepare);
  Item* maker = function ? sole_maker(input, users) : nullptr;
  if (!maker || maker->node->device != input.device() || maker->op->changed_inputs() > 0)
    return nullptr;
  const Shape& shape = maker->node->outputs[0].shape;
  const auto with_function = [&](const Op& op) -> std::shared_ptr<const Op> {
    const auto* chain = dynamic_cast<const ChainOp*>(&op);
    if (!chain) return op.with_epilogue(function->chain(), 0);
    return std::make_shared<ChainOp>(simplified(joined(function->chain(), 0, chain->chain())),
                                     shape);
  };
  auto both = with_function(*maker->op);
  auto alone = maker->alone ? with_function(*maker->alone->op) : nullptr;
  if (!both || (maker->alone && !alone) ||
      both->cannot_run(maker->node->device.info(), maker->inputs))
    return nullptr;
  auto node = std::make_shared<Node>();
  node->op = both;
  node->inputs = maker->inputs;
  node->outputs = {{shape, function->chain().output}};
  node->device = maker->node->device;
  uses_[node.get()] = users;
  item_of_[node.get()] = static_cast<size_t>(maker - items_.data());
  maker->op = std::move(both);
  maker->node = node.get();
  if (alone) {
    maker->alone->op = std::move(alone);
    maker->alone->node = node.get();
  }
  joint_nodes_.push_back(node);
  return node;
}

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
    const auto users = static_cast<uint32_t>(each.users.size());
    auto node = made_prepared(each.input, *each.prepare, users);
    const bool by_maker = node != nullptr;
    if (!by_maker && users < 2 && !each.users[0].second.apart) continue;
    if (!by_maker) {
      node = std::make_shared<Node>();
      node->op = each.prepare;
      node->inputs = {each.input};
      node->outputs = each.prepare->infer(node->inputs);
      node->device = each.input.device();
      uses_[node.get()] = users;
      Item& made = before[each.users.front().first] = {node.get(), node->op, node->inputs};
      made.prepares = true;
    }
    for (const auto& [number, preparation] : each.users) {
      Item& item = items_[number];
      if (!by_maker) item.alone = std::make_shared<Item>(item);
      item.op = preparation.rest;
      // Where the maker makes it, it lies dense, as the input did.
      item.inputs[preparation.input] =
          by_maker ? Tensor(node, 0, each.input.layout()) : Tensor(node, 0);
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
