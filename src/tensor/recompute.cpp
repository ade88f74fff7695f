// Computes parts of a graph again for the gradient, which saves the memory of what they make.
#include "tensor/recompute.h"

#include <map>
#include <unordered_set>

#include "prism/error.h"

namespace prism {

namespace {

// Those of the nodes that the result depends on, in their order. Others may be gone soon.
std::vector<std::shared_ptr<Node>> reached(const Tensor& result,
                                           std::vector<std::shared_ptr<Node>> nodes) {
  std::unordered_set<const Node*> used = {result.node().get()};
  std::vector<std::shared_ptr<Node>> found;
  for (size_t n = nodes.size(); n-- > 0;) {
    if (!used.contains(nodes[n].get())) continue;
    for (const Tensor& input : nodes[n]->inputs) used.insert(input.node().get());
    found.push_back(std::move(nodes[n]));
  }
  return {found.rbegin(), found.rend()};
}

}  // namespace

void Recomputation::add(const RecomputedOp& part, std::span<const Tensor> gradients) {
  std::map<std::pair<const Node*, uint32_t>, Tensor> later;  // what comes from outside
  for (const std::shared_ptr<Node>& node : part.nodes()) {
    if (node->is_evaluated()) continue;
    auto copy = std::make_shared<Node>();
    copy->op = node->op;
    copy->outputs = node->outputs;
    copy->device = node->device;
    copy->requires_grad = node->requires_grad;
    for (const Tensor& input : node->inputs) {
      std::shared_ptr<Node> maker = again(input.node());
      uint32_t output = input.output();
      if (maker == input.node() && maker->op && !maker->is_evaluated()) {
        Tensor& waiting = later[{maker.get(), output}];
        if (!waiting) {
          std::vector<Tensor> inputs = {Tensor(maker, output)};
          for (const Tensor& each : gradients)
            if (each.device() == maker->device) inputs.push_back(each);
          waiting = use_op(std::make_shared<AliasOp>(), std::move(inputs));
        }
        maker = waiting.node();
        output = 0;
      }
      copy->inputs.emplace_back(std::move(maker), output, input.layout());
    }
    copies_[node.get()] = std::move(copy);
  }
}

const std::shared_ptr<Node>& Recomputation::again(const std::shared_ptr<Node>& node) const {
  const auto found = copies_.find(node.get());
  return found == copies_.end() ? node : found->second;
}

Tensor recomputed(const std::function<Tensor()>& f) {
  RecordedNodes recorded;
  const Tensor result = f();
  if (!result) throw Error(ErrorCode::kInvalidArgument, "recompute: f returned an empty Tensor");
  // A view of the result keeps its layout; the part ends at the node.
  const Tensor whole = result.contiguous();
  return use_op(std::make_shared<RecomputedOp>(reached(whole, std::move(recorded.nodes))), {whole});
}

}  // namespace prism
