// The mixture-of-experts block: a router, the experts it selects and a shared expert.
#include <algorithm>
#include <limits>

#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/join.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"
#include "prism/ops/sort.h"

namespace prism::llm {

namespace {

// Keeps the scores of the best groups, those whose two best experts have the largest sum; the
// others become -infinity.
Tensor best_groups(const Tensor& scores, int64_t groups, int64_t used) {
  const int64_t rows = scores.size(0), each = scores.size(1) / groups;
  const Tensor grouped = scores.reshape({rows, groups, each});
  const Tensor of_group = sum(top_k(grouped, std::min<int64_t>(2, each)).values, {-1});
  const Tensor kept = sum(one_hot(top_k(of_group, used).indices, groups), {1});
  return where(kept.unsqueeze(-1) > 0.5, grouped, -std::numeric_limits<double>::infinity())
      .reshape(scores.shape());
}

// The share of the best expert, with the score `best` [rows, 1], among those whose scores are at
// most `range` of the larger score below it. hidden: experts that do not count; may be empty.
Tensor mixer_share(const Tensor& scores, const Tensor& best, double range, const Tensor& hidden) {
  const Tensor distance = (best - scores) / maximum(abs(scores), best);
  Tensor parts = where(distance > range, 0.0, exp(minimum(scores - best, 0.0)));
  if (hidden) parts = parts * (1.0 - hidden);
  return 1.0 / sum(parts, {-1}, true);
}

}  // namespace

Blocks::Chosen Blocks::choose(const LayerWeights& w, const Tensor& x) const {
  const Tensor logits = project(x, w.router);
  const bool is_plain = !w.expert_bias && !w.experts_of_token && config_.expert_groups == 1;
  const auto chosen = [&](const Tensor& experts, Tensor weights) -> Chosen {
    if (config_.expert_weights_scale != 1) weights = weights * config_.expert_weights_scale;
    return {experts, weights};
  };
  if (config_.mixer_range > 0) {
    const Ordered best = top_k(logits, 2);
    const Tensor first = one_hot(best.indices.slice(-1, 0, 1), config_.experts)
                             .reshape({logits.size(0), config_.experts});
    const Tensor shares[] = {
        mixer_share(logits, best.values.slice(-1, 0, 1), config_.mixer_range, {}),
        mixer_share(logits, best.values.slice(-1, 1, 2), config_.mixer_range, first)};
    return chosen(best.indices, concat(shares, -1));
  }
  if (is_plain &&
      (config_.expert_scores == ExpertScores::softmax_of_chosen ||
       (config_.expert_scores == ExpertScores::softmax && config_.expert_weights_sum_to_one))) {
    // A softmax over the selected experts equals the full softmax renormalised to a sum of 1.
    const Ordered best = top_k(logits, config_.experts_used);
    return chosen(best.indices, softmax(best.values, -1));
  }
  Tensor scores = logits;
  if (config_.expert_scores == ExpertScores::softmax) scores = softmax(logits, -1);
  if (config_.expert_scores == ExpertScores::sigmoid) scores = sigmoid(logits);
  if (config_.expert_scores == ExpertScores::sqrt_softplus) scores = sqrt(softplus(logits));
  Tensor ranked = w.expert_bias ? scores + w.expert_bias : scores;
  if (config_.expert_groups > 1)
    ranked = best_groups(ranked, config_.expert_groups, config_.expert_groups_used);
  Ordered best;
  if (w.experts_of_token)
    best.indices = cast(gather_rows(w.experts_of_token, tokens(x.device())), DType::i32);
  else
    best = top_k(ranked, config_.experts_used);
  Tensor weights = is_plain ? best.values : take_along(scores, best.indices, -1);
  if (config_.expert_scores == ExpertScores::softmax_of_chosen) weights = softmax(weights, -1);
  if (config_.expert_weights_sum_to_one) {
    constexpr double kLeastSum = 6.103515625e-5;  // the smallest normal f16: no division by 0
    weights = weights / maximum(sum(weights, {-1}, true), kLeastSum);
  }
  return chosen(best.indices, weights);
}

Tensor Blocks::routed(const LayerWeights& w, const Tensor& x, const Chosen& chosen) const {
  const Device& where = w.expert_up.weight.device();
  const Tensor experts = chosen.experts.to(where);
  const Tensor weights = chosen.weights.unsqueeze(-1).to(where);
  const auto by = [&](const Tensor& rows, const Linear& linear) {
    return project(rows, linear, experts);
  };
  Tensor input = x.to(where);
  if (config_.weights_before_experts) input = input.unsqueeze(1) * weights;
  const Tensor up = by(input, w.expert_up);
  Tensor inner;
  if (w.expert_gate) {
    inner = activate(by(input, w.expert_gate), up, limit(config_.expert_limits));
  } else if (up.size(-1) == w.expert_down.weight.size(2)) {
    inner = activate(up);
  } else {
    const std::vector<Tensor> both = split(up, 2, -1);
    inner = activate(both[0], both[1]);
  }
  const Tensor each = by(inner, w.expert_down);
  return sum(config_.weights_before_experts ? each : each * weights, {1}).to(x.device());
}

Tensor Blocks::experts(const LayerWeights& w, const Tensor& x, const Tensor& chosen_by) const {
  const Tensor result = routed(w, x, choose(w, chosen_by));
  if (!w.shared_up) return result;
  LayerWeights shared;
  shared.gate = w.shared_gate, shared.up = w.shared_up, shared.down = w.shared_down;
  Tensor also = feed_forward(shared, x);
  if (w.shared_router) also = also * sigmoid(project(x, w.shared_router));
  return result + also;
}

}  // namespace prism::llm
