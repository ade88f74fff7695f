// The blocks of recurrent layers, which many architectures share: their sizes, their weights and
// their graphs.
#pragma once

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"

namespace prism::llm {

// --- sizes
// Reads ssm.conv_kernel, inner_size, state_size, time_step_rank and group_count into Config::ssm.
// Throws kCorruptFile naming the key.
void set_ssm(const GgufFile& file, Config& config);
// The layers with attention.head_count_kv 0 are recurrent and remember these; the others nothing.
void set_states_of_headless(Config& config, const std::vector<Shape>& states);
// The layers that attention.recurrent_layers names, or all but every full_attention_interval-th,
// are recurrent and have no attention.
void set_recurrent_layers(const GgufFile& file, Config& config, int64_t interval,
                          const std::vector<Shape>& states);
// All layers are recurrent and have no attention.
void set_all_recurrent(Config& config, const std::vector<Shape>& states);
bool is_recurrent(const Config& config, int64_t layer);

// --- Mamba: channels with a diagonal state each; the names of tensors begin with "ssm_"
std::vector<Shape> mamba_states(const Config& config);
void load_mamba(WeightLoader& from, LayerWeights& layer);
Tensor mamba(const Blocks& blocks, const LayerWeights& w, const Tensor& x);

// --- Mamba 2: heads with a matrix of state each, whose rows decay alike
std::vector<Shape> mamba2_states(const Config& config);
void load_mamba2(WeightLoader& from, LayerWeights& layer);
Tensor mamba2(const Blocks& blocks, const LayerWeights& w, const Tensor& x);

// --- the parts that others share
// A convolution with the state i, and silu of it. name: of the weight, "ssm_conv1d".
Tensor convolved(const Blocks& blocks, const LayerWeights& w, const Tensor& x, const char* name,
                 size_t state);
// Mamba 2 from its parts, without what ssm_d adds: x [rows, heads, values], steps [rows, heads]
// before the softplus, b and c [rows, groups, keys]; uses ssm_a and the state 1.
Tensor scan_heads(const Blocks& blocks, const LayerWeights& w, const Tensor& x, const Tensor& steps,
                  const Tensor& b, const Tensor& c);
// x over its length, or over epsilon if that is longer.
Tensor unit_length(const Tensor& x, double epsilon);
// The rows before those of x in their texts; the first row of a text is in state i.
Tensor previous_rows(const Blocks& blocks, const LayerWeights& w, const Tensor& x, size_t state);
void load_previous_rows(const WeightLoader& from, LayerWeights& layer);
// Rows in which each channel is a mixture of the row before and the row itself. The weight [width]
// or [mixtures, width], the part of the row before, becomes taps when it is loaded.
Tensor mixed_rows(const Blocks& blocks, const LayerWeights& w, const Tensor& x, const char* weight,
                  size_t state);
void load_mixed_rows(LayerWeights& layer, const char* weight);

}  // namespace prism::llm
