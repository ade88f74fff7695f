// Implements the tree of cached prefixes.
#include "llm/generate/prefix_tree.h"

#include <algorithm>
#include <functional>

namespace prism::llm {

// The tokens of one block after those of its parents. Only a leaf may have fewer than a whole
// block.
struct PrefixTree::Node {
  std::vector<int32_t> tokens;
  std::vector<int32_t> blocks;         // by group; kNone: forgotten
  int32_t state = CacheBlocks::kNone;  // after the last of the tokens
  Node* parent = nullptr;
  std::vector<std::unique_ptr<Node>> children;
  uint64_t last_used = 0;

  // The child that begins with the most of these tokens, and how many.
  std::pair<Node*, size_t> best_child(std::span<const int32_t> next) const {
    std::pair<Node*, size_t> best = {nullptr, 0};
    for (const auto& child : children) {
      const auto same =
          static_cast<size_t>(std::ranges::mismatch(child->tokens, next).in2 - next.begin());
      if (same > best.second) best = {child.get(), same};
    }
    return best;
  }
  void for_each(const std::function<void(Node&)>& use) {
    for (const auto& child : children) {
      use(*child);
      child->for_each(use);
    }
  }
};

PrefixTree::PrefixTree(int64_t block, std::vector<Group> groups, CacheBlocks* states)
    : block_(block), groups_(std::move(groups)), states_(states), root_(std::make_unique<Node>()) {}
PrefixTree::~PrefixTree() { clear(); }

void PrefixTree::clear() {
  root_->for_each([&](Node& node) { release(node); });
  root_->children.clear();
}

void PrefixTree::release(Node& node) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].blocks->release(node.blocks[g]);
    node.blocks[g] = CacheBlocks::kNone;
  }
  release_state(node);
}

void PrefixTree::release_state(Node& node) const {
  if (states_) states_->release(node.state);
  node.state = CacheBlocks::kNone;
}

size_t PrefixTree::size() const {
  size_t count = 0;
  root_->for_each([&](Node&) { ++count; });
  return count;
}

int64_t PrefixTree::first_entry(const Group& group, int64_t position) const {
  return group.window > 0 ? std::max<int64_t>(0, position + 1 - group.window) / block_ : 0;
}

bool PrefixTree::can_continue(const Match& match, int64_t length) const {
  for (size_t g = 0; g < groups_.size(); ++g)
    for (int64_t entry = first_entry(groups_[g], length); entry * block_ < length; ++entry)
      if (match.tables[g][static_cast<size_t>(entry)] == CacheBlocks::kNone) return false;
  return true;
}

PrefixTree::Match PrefixTree::find(std::span<const int32_t> tokens) {
  Match match{0, Tables(groups_.size())};
  const uint64_t now = ++uses_;
  const auto block = static_cast<size_t>(block_);
  Match with_state;  // the longest with a state
  for (Node* node = root_.get(); match.length < std::ssize(tokens);) {
    const auto rest = tokens.subspan(static_cast<size_t>(match.length));
    const auto [child, same] = node->best_child(rest.first(std::min(rest.size(), block)));
    if (!child) break;
    child->last_used = now;
    for (size_t g = 0; g < groups_.size(); ++g) match.tables[g].push_back(child->blocks[g]);
    match.length += static_cast<int64_t>(same);
    if (same == child->tokens.size() && child->state != CacheBlocks::kNone)
      with_state = {match.length, match.tables, child->state};
    if (same < block) break;
    node = child;
  }
  if (states_) match = with_state.length > 0 ? with_state : Match{0, Tables(groups_.size())};
  // Windowed layers may have forgotten what the end sees, and still have what an earlier one sees.
  while (!can_continue(match, match.length))
    match.length = states_ ? 0 : (match.length - 1) / block_ * block_;
  if (match.length == 0) match.state = CacheBlocks::kNone;
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<int32_t>& table = match.tables[g];
    table.resize(static_cast<size_t>((match.length + block_ - 1) / block_));
    std::fill_n(table.begin(), std::min(first_entry(groups_[g], match.length), std::ssize(table)),
                CacheBlocks::kNone);
  }
  return match;
}

PrefixTree::Tables PrefixTree::known_blocks(std::span<const int32_t> tokens) const {
  Tables tables(groups_.size());
  const auto block = static_cast<size_t>(block_);
  const Node* node = root_.get();
  for (; tokens.size() >= block; tokens = tokens.subspan(block)) {
    const auto [child, same] = node->best_child(tokens.first(block));
    if (same < block) break;
    for (size_t g = 0; g < groups_.size(); ++g) tables[g].push_back(child->blocks[g]);
    node = child;
  }
  return tables;
}

void PrefixTree::add(std::span<const int32_t> tokens,
                     const std::vector<std::span<const int32_t>>& tables, int32_t state) {
  const uint64_t now = ++uses_;
  const auto block = static_cast<size_t>(block_);
  Node* node = root_.get();
  for (size_t entry = 0; entry * block < tokens.size(); ++entry) {
    const auto rest = tokens.subspan(entry * block);
    const auto own = rest.first(std::min(rest.size(), block));
    auto [child, same] = node->best_child(own);
    if (child && same < own.size() && same < child->tokens.size()) child = nullptr;  // they differ
    if (!child) {
      node->children.push_back(std::make_unique<Node>());
      child = node->children.back().get();
      child->parent = node;
      child->blocks.assign(groups_.size(), CacheBlocks::kNone);
    }
    child->last_used = now;
    const bool is_longer = own.size() > child->tokens.size();
    if (is_longer) {
      release(*child);
      child->tokens.assign(own.begin(), own.end());
    }
    // A known block stays, unless it was forgotten. A shorter one lacks positions.
    for (size_t g = 0; g < groups_.size() && own.size() == child->tokens.size(); ++g) {
      if (child->blocks[g] != CacheBlocks::kNone) continue;
      child->blocks[g] = tables[g][entry];
      groups_[g].blocks->share(child->blocks[g]);
    }
    const bool is_end = own.size() == rest.size() && own.size() == child->tokens.size();
    if (states_ && is_end && child->state == CacheBlocks::kNone) {
      child->state = state;
      states_->share(state);
    }
    node = child;
  }
}

bool PrefixTree::evict(size_t group, int32_t shared) {
  const bool is_windowed = groups_[group].window > 0;
  Node *oldest = nullptr, *sharing = nullptr;
  root_->for_each([&](Node& node) {
    const int32_t block = node.blocks[group];
    if (block == CacheBlocks::kNone || (!is_windowed && !node.children.empty())) return;
    if (block == shared) sharing = &node;
    if (groups_[group].blocks->uses(block) > 1) return;
    if (!oldest || node.last_used < oldest->last_used) oldest = &node;
  });
  if (!oldest) oldest = sharing;
  if (!oldest) return false;
  if (is_windowed) {
    groups_[group].blocks->release(oldest->blocks[group]);
    oldest->blocks[group] = CacheBlocks::kNone;
    return true;
  }
  release(*oldest);
  std::erase_if(oldest->parent->children, [&](const auto& child) { return child.get() == oldest; });
  return true;
}

bool PrefixTree::evict_state() {
  Node* oldest = nullptr;
  const auto rank = [&](const Node& node) {
    return std::pair(states_->uses(node.state) > 1, node.last_used);
  };
  root_->for_each([&](Node& node) {
    if (node.state == CacheBlocks::kNone) return;
    if (!oldest || rank(node) < rank(*oldest)) oldest = &node;
  });
  if (oldest) release_state(*oldest);
  return oldest != nullptr;
}

int64_t PrefixTree::evictable(size_t group) const {
  int64_t count = 0;
  root_->for_each([&](Node& node) {
    const int32_t block = node.blocks[group];
    count += block != CacheBlocks::kNone && groups_[group].blocks->uses(block) == 1;
  });
  return count;
}

}  // namespace prism::llm
