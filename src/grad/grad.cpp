// Reverse-mode differentiation: from a result back to the tensors it was computed from.
#include "prism/grad.h"

#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "ops/shape/view_gradient.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "tensor/chain/chain_op.h"
#include "tensor/expression_op.h"
#include "tensor/op.h"
#include "tensor/recompute.h"

namespace prism {

namespace {

using NodeSet = std::unordered_set<const Node*>;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// The nodes between output and the ends in topological order, inputs first. The ends are included;
// their inputs are not.
std::vector<std::shared_ptr<Node>> nodes_between(const Tensor& output, const NodeSet& ends) {
  std::vector<std::shared_ptr<Node>> order;
  std::unordered_map<const Node*, bool> leads = {{output.node().get(), false}};
  std::vector<std::pair<std::shared_ptr<Node>, size_t>> open = {{output.node(), 0}};
  while (!open.empty()) {
    auto& [node, next] = open.back();
    const bool is_end = ends.contains(node.get());
    if (!is_end && next < node->inputs.size()) {
      const std::shared_ptr<Node>& input = node->inputs[next++].node();
      if (leads.try_emplace(input.get(), false).second) open.emplace_back(input, 0);
      continue;
    }
    bool reaches = is_end;
    if (!is_end)
      for (const Tensor& input : node->inputs) reaches = reaches || leads[input.node().get()];
    leads[node.get()] = reaches;
    if (reaches) order.push_back(node);
    open.pop_back();
  }
  return order;
}

// Accumulates gradients backwards from an output to the ends.
class BackwardWalk {
 public:
  BackwardWalk(const Tensor& output, const Tensor& seed, const NodeSet& ends) {
    give(output, seed ? seed : full(output.shape(), 1.0, output.type(), output.device()));
    const auto order = nodes_between(output, ends);
    for (const auto& node : order) leads_.insert(node.get());
    for (size_t n = order.size(); n-- > 0;)
      if (!ends.contains(order[n].get())) pass_back(order[n]);
  }

  // The gradient of an output of a node; an empty tensor if none arrived.
  Tensor of(const std::shared_ptr<Node>& node, uint32_t output) const {
    const auto found = gathered_.find({node.get(), output});
    return found == gathered_.end() ? Tensor() : found->second;
  }

 private:
  // Adds a gradient with the shape of the view, which may differ from that of the node's output.
  void give(const Tensor& view, const Tensor& gradient) {
    const Shape& whole = view.node()->outputs[view.output()].shape;
    const bool same = view.layout() == Layout::dense(whole);
    const Tensor placed = same ? gradient : view_gradient(gradient, whole, view.layout());
    Tensor& sum = gathered_[{view.node().get(), view.output()}];
    sum = sum ? sum + placed : placed;
  }

  void pass_back(const std::shared_ptr<Node>& node) {
    std::vector<Tensor> outputs, output_gradients;
    bool any = false;
    for (uint32_t i = 0; i < node->outputs.size(); ++i) {
      output_gradients.push_back(of(node, i));
      any = any || output_gradients.back();
    }
    if (!any) return;
    if (const auto* part = dynamic_cast<const RecomputedOp*>(node->op.get())) {
      finished_.push_back(output_gradients[0]);
      recomputed_.add(*part, std::exchange(finished_, {}));
    }
    const std::shared_ptr<Node>& made = recomputed_.again(node);
    for (uint32_t i = 0; i < node->outputs.size(); ++i) outputs.emplace_back(made, i);
    const size_t count = node->inputs.size();
    const auto wanted = std::make_unique<bool[]>(count);
    for (size_t i = 0; i < count; ++i) wanted[i] = leads_.contains(node->inputs[i].node().get());
    const auto* composed = dynamic_cast<const ExpressionOp*>(node->op.get());
    const std::vector<Tensor> results =
        composed ? through_expression(*composed, made->inputs, output_gradients)
                 : node->op->gradient(
                       {made->inputs, outputs, output_gradients, std::span(wanted.get(), count)});
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i] || !wanted[i]) continue;
      const std::shared_ptr<Node>& input = node->inputs[i].node();
      give(node->inputs[i], results[i]);
      if (made != node && recomputed_.again(input) == input) finished_.push_back(results[i]);
    }
  }

  static std::vector<Tensor> through_expression(const ExpressionOp& op,
                                                std::span<const Tensor> given,
                                                std::span<const Tensor> output_gradients) {
    // Copies have nodes of their own, even where two inputs are one tensor.
    std::vector<Tensor> inputs, results(given.size());
    NodeSet ends;
    for (const Tensor& each : given) {
      inputs.push_back(copied(each));
      ends.insert(inputs.back().node().get());
    }
    const std::vector<Tensor> outputs = op.expression(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!output_gradients[i]) continue;
      const BackwardWalk walk(outputs[i], output_gradients[i], ends);
      for (size_t n = 0; n < inputs.size(); ++n)
        if (const Tensor more = walk.of(inputs[n].node(), 0))
          results[n] = results[n] ? results[n] + more : more;
    }
    return results;
  }

  NodeSet leads_;
  Recomputation recomputed_;
  std::vector<Tensor> finished_;  // gradients that the last recomputed parts gave to others
  std::map<std::pair<const Node*, uint32_t>, Tensor> gathered_;
};

// The part of a node's gradient that belongs to a view. The gradient has the node's shape.
Tensor seen_through(const Tensor& view, const Tensor& gradient) {
  const Layout dense = Layout::dense(view.node()->outputs[view.output()].shape);
  if (view.layout() == dense) return gradient;
  const Tensor whole = gradient.contiguous();
  return {whole.node(), whole.output(), view.layout()};
}

void check_loss(const char* doing, const Tensor& loss, const Tensor& seed) {
  if (!loss) fail(fmt::format("{}: an empty Tensor", doing));
  if (!seed && loss.elements() != 1) {
    fail(
        fmt::format("{}: a result of shape {}; only one number has a gradient (sum() or mean() it)",
                    doing, loss.shape().text()));
  }
  if (seed && !(seed.shape() == loss.shape())) {
    fail(fmt::format("{}: a seed of shape {} for a result of {}", doing, seed.shape().text(),
                     loss.shape().text()));
  }
}

void check_float(const char* doing, const Tensor& input) {
  if (!input) fail(fmt::format("{}: an empty Tensor as an input", doing));
  if (input.dtype().is_block() || !is_float(input.dtype().plain())) {
    fail(
        fmt::format("{}: an input of type {}; only floats have gradients, so cast() it before "
                    "the function",
                    doing, input.dtype().name()));
  }
}

// The same values as a leaf that requires gradients. A tensor that already requires them is
// returned unchanged, so that an outer derivative can pass through it.
Tensor as_variable(const Tensor& x) {
  check_float("grad", x);
  const Tensor whole = x.contiguous();
  if (whole.requires_grad()) return whole;
  whole.eval();
  auto node = std::make_shared<Node>();
  node->outputs = {{whole.shape(), whole.type()}};
  node->device = whole.device();
  node->storage = {whole.node()->storage[whole.output()]};
  node->requires_grad = true;
  return Tensor(std::move(node), 0);
}

}  // namespace

std::vector<Tensor> gradients(const Tensor& output, std::initializer_list<Tensor> inputs,
                              const Tensor& seed) {
  return gradients(output, std::span<const Tensor>(inputs.begin(), inputs.size()), seed);
}

std::vector<Tensor> gradients(const Tensor& output, std::span<const Tensor> inputs,
                              const Tensor& seed) {
  check_loss("gradients", output, seed);
  for (const Tensor& input : inputs) check_float("gradients", input);
  NodeSet ends;
  for (const Tensor& input : inputs) ends.insert(input.node().get());
  const BackwardWalk walk(output, seed, ends);
  std::vector<Tensor> results;
  for (const Tensor& input : inputs) {
    const Tensor whole = walk.of(input.node(), input.output());
    results.push_back(whole ? seen_through(input, whole)
                            : zeros(input.shape(), input.dtype(), input.device()));
  }
  return results;
}

DerivedFunction<ValueAndGrad> value_and_grad(TensorFunction f) {
  return DerivedFunction<ValueAndGrad>([f = std::move(f)](std::span<const Tensor> inputs) {
    std::vector<Tensor> variables;
    for (const Tensor& each : inputs) variables.push_back(as_variable(each));
    ValueAndGrad result;
    result.value = f(variables);
    result.gradients = gradients(result.value, variables);
    return result;
  });
}

DerivedFunction<std::vector<Tensor>> grad(TensorFunction f) {
  return DerivedFunction<std::vector<Tensor>>(
      [both = value_and_grad(std::move(f))](std::span<const Tensor> inputs) {
        return both(inputs).gradients;
      });
}

Tensor recompute(const TensorFunction& f, std::span<const Tensor> inputs) {
  return recomputed([&] { return f(inputs); });
}

Tensor recompute(const TensorFunction& f, std::initializer_list<Tensor> inputs) {
  return recompute(f, std::span<const Tensor>(inputs.begin(), inputs.size()));
}

void backward(const Tensor& loss) {
  check_loss("backward", loss, {});
  // Leaves that the loss depends on and that require gradients.
  NodeSet seen, ends;
  std::vector<std::shared_ptr<Node>> open = {loss.node()}, leaves;
  while (!open.empty()) {
    const std::shared_ptr<Node> node = open.back();
    open.pop_back();
    if (!node->requires_grad || !seen.insert(node.get()).second) continue;
    if (node->inputs.empty()) {
      leaves.push_back(node);
      ends.insert(node.get());
    }
    for (const Tensor& input : node->inputs) open.push_back(input.node());
  }
  if (leaves.empty())
    fail("backward: nothing the loss depends on asked for gradients (set_requires_grad())");
  std::vector<Tensor> fresh;
  {
    const BackwardWalk walk(loss, {}, ends);
    const NoGrad off;
    for (const auto& leaf : leaves) {
      const Tensor gradient = walk.of(leaf, 0);
      if (!gradient) continue;
      leaf->grad = leaf->grad ? leaf->grad + gradient : gradient;
      fresh.push_back(leaf->grad);
    }
  }
  eval(fresh);
  for (const auto& leaf : leaves)
    if (leaf->grad) leaf->grad = leaf->grad.detach();
}

void Tensor::backward() const { prism::backward(*this); }

Tensor Tensor::grad() const {
  return node_ && node_->grad ? seen_through(*this, node_->grad) : Tensor();
}

void Tensor::zero_grad() {
  if (node_) node_->grad = Tensor();
}

}  // namespace prism
