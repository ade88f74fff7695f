// The mixture-of-experts block: a router and the experts it selects.
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"
#include "prism/ops/sort.h"

namespace prism::llm {

Tensor Blocks::experts(const LayerWeights& w, const Tensor& x, Gating gating) const {
  const Ordered best = top_k(project(x, w.router), config_.experts_used);
  const Device& where = w.expert_up.weight.device();
  const Tensor there = x.to(where), chosen = best.indices.to(where);
  const auto by = [&](const Tensor& rows, const Linear& linear) {
    return expert_matmul(rows, linear.weight, chosen, linear.bias);
  };
  const Tensor inner = gated(by(there, w.expert_gate), by(there, w.expert_up), gating);
  // A softmax over the selected experts equals the full softmax renormalised to a sum of 1.
  const Tensor shares = softmax(best.values, -1).unsqueeze(-1).to(where);
  return sum(by(inner, w.expert_down) * shares, {1}).to(x.device());
}

}  // namespace prism::llm
