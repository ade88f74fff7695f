// Loads, makes and applies the inputs of each layer.
#include "llm/architectures/layer_inputs.h"

#include <cmath>

#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"

namespace prism::llm {

namespace {

constexpr const char *kTable = "per_layer_token_embd.weight",
                     *kProjection = "per_layer_model_proj.weight",
                     *kNorm = "per_layer_proj_norm.weight", *kGate = "inp_gate", *kOut = "proj",
                     *kOutNorm = "post_norm.weight";

}  // namespace

void load_layer_input_tables(WeightLoader& from, const Placement& placement, int64_t length,
                             Weights& weights) {
  const Config& config = from.config();
  const int64_t all = length * config.layers;
  const auto take = [&](const char* name, const Shape& shape) {
    weights.others[name] = from.take(name, shape, placement.embedding);
  };
  take(kTable, {config.vocabulary, all});
  take(kProjection, {all, config.width});
  take(kNorm, {length});
}

void load_layer_input(WeightLoader& from, int64_t length, LayerWeights& layer) {
  const int64_t width = from.config().width;
  from.keep_matrix(layer, kGate, {length, width});
  from.keep_matrix(layer, kOut, {width, length});
  from.keep(layer, kOutNorm, {width});
}

void make_layer_inputs(Blocks& blocks, const Tensor& x) {
  const OtherWeights& w = blocks.weights().others;
  const Tensor& norm = w.at(kNorm);
  const Shape shape = {x.size(0), blocks.config().layers, norm.size(0)};
  const auto root = [](int64_t value) { return std::sqrt(static_cast<double>(value)); };
  const Tensor own =
      cast(gather_rows(w.at(kTable), blocks.tokens(x.device())), DType::f32).reshape(shape) *
      root(norm.size(0));
  const Tensor projected =
      (linear(x, w.at(kProjection)) * (1 / root(blocks.config().width))).reshape(shape);
  blocks.set_layer_inputs((own + blocks.norm(projected, {norm, {}})) * std::sqrt(0.5));
}

Tensor layer_input(const Blocks& blocks, const LayerWeights& w, const Tensor& x) {
  const Tensor input = blocks.layer_inputs()
                           .slice(1, blocks.layer(), blocks.layer() + 1)
                           .to(x.device())
                           .reshape({x.size(0), blocks.layer_inputs().size(2)});
  const Tensor gated = blocks.activate(blocks.project(x, w.matrix(kGate))) * input;
  return blocks.norm(blocks.project(gated, w.matrix(kOut)), {w.other(kOutNorm), {}});
}

}  // namespace prism::llm
