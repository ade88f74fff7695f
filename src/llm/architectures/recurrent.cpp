// Implements the sizes of recurrent layers and the parts that their blocks share.
#include "llm/architectures/recurrent.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/recurrence.h"
#include "prism/ops/reduce.h"

namespace prism::llm {

void set_ssm(const GgufFile& file, Config& config) {
  constexpr int64_t kMost = 1 << 20;
  const auto needed = [&](const char* name, int64_t least) {
    if (!file.has(config_key(file, name)))
      throw Error(ErrorCode::kNotFound, fmt::format("model: the file has no {}; {} models need it",
                                                    config_key(file, name), config.architecture));
    return config_integer(file, name, 0, least, kMost);
  };
  config.ssm.taps = needed("ssm.conv_kernel", 2);
  config.ssm.inner = needed("ssm.inner_size", 1);
  config.ssm.keys = needed("ssm.state_size", 1);
  config.ssm.rank = needed("ssm.time_step_rank", 1);
  config.ssm.groups = std::max<int64_t>(1, config_integer(file, "ssm.group_count", 1, 0, kMost));
}

void set_all_recurrent(Config& config, const std::vector<Shape>& states) {
  for (LayerConfig& each : config.each_layer) {
    each.kv_heads = 0;
    each.states = states;
  }
}

void set_states_of_headless(Config& config, const std::vector<Shape>& states) {
  for (LayerConfig& each : config.each_layer)
    if (each.kv_heads == 0) each.states = states;
}

void set_recurrent_layers(const GgufFile& file, Config& config, int64_t interval,
                          const std::vector<Shape>& states) {
  const std::string key = config_key(file, "attention.recurrent_layers");
  std::vector<int64_t> named;
  if (const GgufValue* found = file.find(key)) {
    named = found->is_array() ? file.integers(key)
                              : std::vector<int64_t>(config.each_layer.size(), file.integer(key));
    if (named.size() < config.each_layer.size())
      throw Error(ErrorCode::kCorruptFile, fmt::format("model: {} has {} values for {} layers", key,
                                                       named.size(), config.layers));
  }
  interval = config_integer(file, "full_attention_interval", interval, 1, 4096);
  for (size_t i = 0; i < config.each_layer.size(); ++i) {
    const bool recurs =
        named.empty() ? (static_cast<int64_t>(i) + 1) % interval != 0 : named[i] != 0;
    if (!recurs) continue;
    config.each_layer[i].kv_heads = 0;
    config.each_layer[i].states = states;
  }
}

bool is_recurrent(const Config& config, int64_t layer) { return !config.at(layer).states.empty(); }

Tensor convolved(const Blocks& blocks, const LayerWeights& w, const Tensor& x, const char* name,
                 size_t state) {
  const std::string weight = std::string(name) + ".weight", bias = std::string(name) + ".bias";
  return short_conv(x, w.other(weight), w.other(bias), blocks.state(state),
                    blocks.texts(x.device()), {.silu = true})
      .y;
}

Tensor scan_heads(const Blocks& blocks, const LayerWeights& w, const Tensor& x, const Tensor& steps,
                  const Tensor& b, const Tensor& c) {
  const Tensor step = Blocks::softplus(steps);
  return state_scan(c, b, x, exp(step * w.other("ssm_a")), blocks.state(1),
                    blocks.texts(x.device()), {.gains = step})
      .y;
}

Tensor unit_length(const Tensor& x, double epsilon) {
  return x / maximum(sqrt(row_sum(square(x))), epsilon);
}

// A convolution whose taps are 1 for the row before and 0 for the row itself.
constexpr const char* kPrevious = "previous";

void load_previous_rows(const WeightLoader& from, LayerWeights& layer) {
  const int64_t width = from.config().width;
  std::vector<float> taps(static_cast<size_t>(2 * width));
  for (size_t i = 0; i < taps.size(); i += 2) taps[i] = 1;
  layer.others[kPrevious] = from_vector(taps, {width, 2}, from.device());
}

Tensor previous_rows(const Blocks& blocks, const LayerWeights& w, const Tensor& x, size_t state) {
  return short_conv(x, w.other(kPrevious), {}, blocks.state(state), blocks.texts(x.device())).y;
}

void load_mixed_rows(LayerWeights& layer, const char* weight) {
  Tensor& taps = layer.others[weight];
  taps = stack({taps, 1.0 - taps}, -1);
  eval({taps});
}

Tensor mixed_rows(const Blocks& blocks, const LayerWeights& w, const Tensor& x, const char* weight,
                  size_t state) {
  return short_conv(x, w.other(weight), {}, blocks.state(state), blocks.texts(x.device())).y;
}

}  // namespace prism::llm
