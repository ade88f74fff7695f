// Lays graphs of scalars out level by level.
#include "nn/scalar/tape.h"

#include <algorithm>

namespace prism::nn {

// Frees long chains without recursion.
ScalarNode::~ScalarNode() {
  std::vector<std::shared_ptr<ScalarNode>> open;
  const auto take = [&](std::shared_ptr<ScalarNode>& part) {
    if (part && part.use_count() == 1) open.push_back(std::move(part));
    part.reset();
  };
  take(a), take(b);
  while (!open.empty()) {
    const std::shared_ptr<ScalarNode> last = std::move(open.back());
    open.pop_back();
    take(last->a), take(last->b);
  }
}

Taped make_tape(std::span<ScalarNode* const> roots, bool gradients) {
  std::vector<ScalarNode*> order;  // operands first
  std::vector<std::pair<ScalarNode*, int>> open;
  const auto is_leaf = [&](const ScalarNode& node) {
    return node.code == ScalarCode::leaf || (node.has_data && !gradients);
  };
  // place: -1 unseen, -2 open; afterwards the level, then the place.
  const auto visit = [&](ScalarNode* node) {
    if (!node || node->place != -1) return;
    node->place = -2;
    open.emplace_back(node, 0);
  };
  for (ScalarNode* root : roots) {
    visit(root);
    while (!open.empty()) {
      auto& [node, next] = open.back();
      if (!is_leaf(*node) && next < 2) {
        visit(next++ == 0 ? node->a.get() : node->b.get());
        continue;
      }
      order.push_back(node);
      open.pop_back();
    }
  }
  std::vector<int32_t> sizes;  // of the levels
  for (ScalarNode* node : order) {
    int32_t level = 0;
    if (!is_leaf(*node)) {
      level = node->a->place + 1;
      if (node->b) level = std::max(level, node->b->place + 1);
    }
    node->place = level;
    if (static_cast<size_t>(level) >= sizes.size()) sizes.resize(static_cast<size_t>(level) + 1);
    ++sizes[static_cast<size_t>(level)];
  }
  Taped result;
  Tape& tape = result.tape;
  std::vector<int32_t> next = {0};
  for (const int32_t size : sizes) next.push_back(next.back() + size);
  tape.levels.assign(next.begin() + 1, next.end());
  const size_t count = order.size();
  tape.entries.resize(count);
  result.nodes.resize(count);
  for (ScalarNode* node : order) {
    const int32_t place = next[static_cast<size_t>(node->place)]++;
    const bool leaf = is_leaf(*node);
    node->place = place;
    result.nodes[static_cast<size_t>(place)] = node;
    TapeEntry& entry = tape.entries[static_cast<size_t>(place)];
    if (leaf) continue;
    entry.code = static_cast<int32_t>(node->code);
    entry.a = node->a->place;
    entry.b = node->b ? node->b->place : entry.a;
    entry.exponent = node->exponent;
  }
  if (gradients) {
    tape.root = roots[0]->place;
    tape.starts.assign(count + 1, 0);
    const auto has_two = [](const ScalarNode& node) { return node.b != nullptr; };
    const auto for_each_use = [&](const auto& act) {
      for (size_t i = static_cast<size_t>(tape.leaves()); i < count; ++i) {
        const auto use = static_cast<int32_t>(2 * i);
        act(tape.entries[i].a, use);
        if (has_two(*result.nodes[i])) act(tape.entries[i].b, use + 1);
      }
    };
    for_each_use(
        [&](int32_t operand, int32_t) { ++tape.starts[static_cast<size_t>(operand) + 1]; });
    for (size_t i = 0; i < count; ++i) tape.starts[i + 1] += tape.starts[i];
    std::vector<int32_t> at(tape.starts.begin(), tape.starts.end() - 1);
    tape.uses.resize(static_cast<size_t>(tape.starts.back()));
    for_each_use([&](int32_t operand, int32_t use) {
      tape.uses[static_cast<size_t>(at[static_cast<size_t>(operand)]++)] = use;
    });
  }
  for (ScalarNode* node : order) node->place = -1;
  return result;
}

}  // namespace prism::nn
