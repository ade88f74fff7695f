// gemma3n: four hidden states of a token of which a layer computes one and predicts and corrects
// the others (AltUp), a low-rank path beside attention (Laurel), sparse activations in the first
// layers, inputs of each layer, and last layers that share caches.
#include <algorithm>
#include <cmath>

#include "llm/architectures/blocks.h"
#include "llm/architectures/gemma.h"
#include "llm/architectures/layer_inputs.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"

namespace prism::llm {

namespace {

constexpr int64_t kStates = 4, kInput = 256, kRank = 64;
constexpr int64_t kSparseLayers = 10, kCachedLayers = 20;

// sqrt(sum(x^2)) over the last axis.
Tensor magnitude(const Tensor& x) { return sqrt(sum(square(x), {-1}, true)); }

// The first state of x [rows, states, width].
Tensor first_of(const Tensor& x) { return x.slice(1, 0, 1).reshape({x.size(0), x.size(2)}); }

// x [rows, width] or [rows, states - 1, width] times a matrix for each other state, with the
// magnitude of `like`.
Tensor other_states(const Tensor& x, const Tensor& matrices, const Tensor& like) {
  const Tensor own = arange(0, kStates - 1, 1, DType::i32, x.device());
  const Tensor made =
      expert_matmul(x, matrices, own.unsqueeze(0).expand({x.size(0), kStates - 1}).contiguous());
  return made * magnitude(like).unsqueeze(1) / magnitude(made);
}

Tensor joined(const Tensor& first, const Tensor& rest) {
  const Tensor parts[] = {first.unsqueeze(1), rest};
  return concat(parts, 1);
}

// Keeps the upper 5% of a normal distribution, less the border.
Tensor sparse(const Tensor& x) {
  constexpr double kDeviations = 1.6448533535003662;
  const Tensor mean = sum(x, {-1}, true) * (1 / static_cast<double>(x.size(-1)));
  const Tensor deviation = magnitude(x - mean) / std::sqrt(static_cast<double>(x.size(-1) - 1));
  return relu(x - (mean + deviation * kDeviations));
}

class Gemma3n : public GemmaArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    configure_unscaled(file, config);
    config.logit_soft_cap = 30;
    set_windows(file, config, 0, 5);
    set_shared_caches(file, config, std::min(kCachedLayers, config.layers));
    config.layer_input = kInput;
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const int64_t width = from.config().width;
    from.norms(norm_names(), layer);
    from.attention(layer);
    from.feed_forward(layer);
    load_layer_input(from, kInput, layer);
    from.keep_matrix(layer, "altup_correct_coef", {kStates, kStates});
    from.keep(layer, "altup_correct_scale.weight", {width});
    from.keep_matrix(layer, "altup_predict_coef", {kStates * kStates, kStates});
    from.keep_matrix(layer, "altup_router", {kStates, width});
    from.keep(layer, "altup_router_norm.weight", {width});
    from.keep_matrix(layer, "laurel_l", {kRank, width});
    from.keep_matrix(layer, "laurel_r", {width, kRank});
    from.keep(layer, "laurel_post_norm.weight", {width});
  }
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    GemmaArchitecture::load_ends(from, placement, weights);
    load_layer_input_tables(from, placement, kInput, weights);
    const int64_t width = from.config().width;
    const Shape matrices = {kStates - 1, width, width};
    weights.others["altup_proj"] = from.take("altup_proj.weight", matrices, placement.embedding);
    weights.others["altup_unembd_proj"] =
        from.take("altup_unembd_proj.weight", matrices, placement.output);
  }

  Tensor embed(Blocks& blocks) const override {
    const Tensor x = GemmaArchitecture::embed(blocks);
    make_layer_inputs(blocks, x);
    return joined(x, other_states(x, blocks.weights().others.at("altup_proj"), x));
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const int64_t rows = x.size(0);
    const Tensor predicted =
        x +
        matmul(blocks.project(modalities(blocks, w, first_of(x)), w.matrix("altup_predict_coef"))
                   .reshape({rows, kStates, kStates}),
               x);
    const Tensor active = first_of(predicted);
    const Tensor made = through_blocks(blocks, w, active);

    const Tensor shares =
        blocks.project(modalities(blocks, w, made), w.matrix("altup_correct_coef")) + 1.0;
    const Tensor corrected = predicted + (made - active).unsqueeze(1) * shares.unsqueeze(2);
    const Tensor first = first_of(corrected);
    const Tensor added = layer_input(blocks, w, first * w.other("altup_correct_scale.weight"));
    return joined(first, corrected.slice(1, 1, kStates) + added.unsqueeze(1));
  }

  Tensor hidden(Blocks& blocks, const Tensor& x) const override {
    const Tensor first = first_of(x);
    const Tensor others = other_states(x.slice(1, 1, kStates).contiguous(),
                                       blocks.weights().others.at("altup_unembd_proj"), first);
    const Tensor mean = (first + sum(others, {1})) * (1.0 / kStates);
    return GemmaArchitecture::hidden(blocks, mean);
  }

 private:
  static Tensor modalities(const Blocks& blocks, const LayerWeights& w, const Tensor& x) {
    const Tensor normed = blocks.norm(x, {w.other("altup_router_norm.weight"), {}});
    return tanh(blocks.project(normed * (1 / static_cast<double>(blocks.config().width)),
                               w.matrix("altup_router")));
  }

  // The layer proper: attention with the low-rank path beside it, then feed-forward.
  static Tensor through_blocks(Blocks& blocks, const LayerWeights& w, const Tensor& x) {
    const Tensor input = blocks.norm(x, w.attention_norm);
    const Tensor beside =
        input + blocks.norm(blocks.project(blocks.project(input, w.matrix("laurel_l")),
                                           w.matrix("laurel_r")),
                            {w.other("laurel_post_norm.weight"), {}});
    const Tensor attended = x + blocks.norm(blocks.attention(w, input), w.attention_post_norm);
    const Tensor seen = (attended + beside) * std::sqrt(0.5);
    const Tensor normed = blocks.norm(seen, w.feed_forward_norm);
    Tensor gate = blocks.project(normed, w.gate);
    if (blocks.layer() < kSparseLayers) gate = sparse(gate);
    const Tensor inner =
        blocks.project(blocks.activate(gate, blocks.project(normed, w.up)), w.down);
    return seen + blocks.norm(inner, w.feed_forward_post_norm);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_gemma3n() { return std::make_unique<Gemma3n>(); }

}  // namespace prism::llm
