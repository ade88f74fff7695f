// Parts of a graph that the gradient computes again.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tensor/alias.h"

namespace prism {

// Stands for the result of a part of the graph and knows the nodes that made it.
class RecomputedOp : public AliasOp {
 public:
  explicit RecomputedOp(std::vector<std::shared_ptr<Node>> nodes) : nodes_(std::move(nodes)) {}
  const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }  // inputs first

 private:
  std::vector<std::shared_ptr<Node>> nodes_;
};

// The result of f. A gradient computes again what f made, from what was there before.
Tensor recomputed(const std::function<Tensor()>& f);

// The nodes whose values a gradient uses: copies of those in recomputed parts.
class Recomputation {
 public:
  // Copies a part. Nothing of the copy is computed before these gradients are there, the one of its
  // result and those from the parts before: the plan could run it in the forward pass otherwise, or
  // keep several parts at once.
  void add(const RecomputedOp& part, std::span<const Tensor> gradients);
  // The copy of a node; the node itself outside of such parts.
  const std::shared_ptr<Node>& again(const std::shared_ptr<Node>& node) const;

 private:
  std::unordered_map<const Node*, std::shared_ptr<Node>> copies_;
};

}  // namespace prism
