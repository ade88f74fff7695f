// Inputs of each layer beside the hidden state (gemma3n, gemma4): an embedding of the token for
// each layer, to which a projection of the token's main embedding is added.
#pragma once

#include "llm/architectures/architecture.h"

namespace prism::llm {

// Loads the tables outside the layers; length: of the input of a layer.
void load_layer_input_tables(WeightLoader& from, const Placement& placement, int64_t length,
                             Weights& weights);
// Loads the matrices of a layer.
void load_layer_input(WeightLoader& from, int64_t length, LayerWeights& layer);
// Makes the inputs of all layers from the scaled embedding x, for layer_input().
void make_layer_inputs(Blocks& blocks, const Tensor& x);
// What the current layer's input adds: x gates it.
Tensor layer_input(const Blocks& blocks, const LayerWeights& w, const Tensor& x);

}  // namespace prism::llm
