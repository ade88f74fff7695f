// Loads the weights of a whole model, and walks over them.
#include "llm/model/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "llm/architectures/architecture.h"
#include "prism/error.h"

namespace prism::llm {

void for_each_linear(const Weights& weights, const std::function<void(const Linear&)>& use) {
  use(weights.output);
  for (const LayerWeights& layer : weights.layers) {
    for (const auto& [name, each] : layer.matrices) use(each);
    for (const Linear* each : {&layer.q,
                               &layer.k,
                               &layer.v,
                               &layer.qkv,
                               &layer.out,
                               &layer.gate,
                               &layer.up,
                               &layer.down,
                               &layer.attention_gate,
                               &layer.router,
                               &layer.expert_gate,
                               &layer.expert_up,
                               &layer.expert_down,
                               &layer.shared_gate,
                               &layer.shared_up,
                               &layer.shared_down,
                               &layer.shared_router,
                               &layer.latent.q_a,
                               &layer.latent.q_b,
                               &layer.latent.kv_a,
                               &layer.indexer.q,
                               &layer.indexer.k,
                               &layer.indexer.head_weights,
                               &layer.indexer.compressor.values,
                               &layer.indexer.compressor.scores,
                               &layer.compressor.values,
                               &layer.compressor.scores,
                               &layer.cross.q,
                               &layer.cross.k,
                               &layer.cross.v,
                               &layer.cross.out})
      use(*each);
  }
}

void for_each_linear(Weights& weights, const std::function<void(Linear&)>& use) {
  for_each_linear(std::as_const(weights),
                  [&](const Linear& each) { use(const_cast<Linear&>(each)); });
}

void for_each_weight(const Weights& weights, const std::function<void(const Tensor&)>& use) {
  const auto each = [&](std::initializer_list<const Tensor*> tensors) {
    for (const Tensor* tensor : tensors)
      if (*tensor) use(*tensor);
  };
  each({&weights.embedding, &weights.position_embedding, &weights.type_embedding,
        &weights.embedding_norm.weight, &weights.embedding_norm.bias, &weights.output_norm.weight,
        &weights.output_norm.bias, &weights.encoder_norm.weight});
  for_each_linear(weights, [&](const Linear& linear) {
    if (linear.weight && linear.weight.node() != weights.embedding.node()) use(linear.weight);
    each({&linear.bias, &linear.scale, &linear.lora_a, &linear.lora_b});
  });
  const HeadWeights& head = weights.head;
  each({&head.inner.weight, &head.inner.bias, &head.norm.weight, &head.norm.bias, &head.out.weight,
        &head.out.bias});
  for (const Linear& dense : head.dense) each({&dense.weight, &dense.bias});
  for (const LayerWeights& layer : weights.layers) {
    for (const Norm* norm :
         {&layer.attention_norm, &layer.attention_post_norm, &layer.feed_forward_norm,
          &layer.feed_forward_post_norm, &layer.q_norm, &layer.k_norm, &layer.attention_inner_norm,
          &layer.feed_forward_inner_norm, &layer.expert_norm, &layer.latent.q_norm,
          &layer.latent.kv_norm, &layer.indexer.q_norm, &layer.indexer.k_norm,
          &layer.indexer.compressor.norm, &layer.compressor.norm, &layer.cross.norm})
      each({&norm->weight, &norm->bias});
    each({&layer.sinks, &layer.expert_bias, &layer.experts_of_token, &layer.latent.k_b,
          &layer.latent.v_b, &layer.distance_bias, &layer.group_out, &layer.compressor.places,
          &layer.indexer.compressor.places});
    for (const auto& [name, tensor] : layer.others) use(tensor);
  }
  for (const auto& [name, tensor] : weights.others) use(tensor);
}

namespace {

// Reads and checks a list of divisors of the rotary frequencies; empty if the file has none. The
// list may be as long as whole heads or layers with windows need, which ignore it.
std::vector<float> read_divisors(const GgufFile& file, const Config& config, const char* name) {
  const GgufTensor* found = file.find_tensor(name);
  if (!found) return {};
  const int64_t pairs = config.rope_dims / 2, count = found->shape.elements();
  if (!(found->type == ElementType(DType::f32)) ||
      (count != pairs && count != std::max(pairs, config.local_rope_dims / 2) &&
       count != config.head_dim / 2))
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("model: tensor {} is {} {}; it must be f32 [{}]", name,
                            found->type_name(), found->shape.text(), pairs));
  std::vector<float> values = file.tensor(*found).to_vector<float>();
  values.resize(static_cast<size_t>(pairs));
  for (size_t i = 0; i < values.size(); ++i)
    if (!(values[i] > 0 && std::isfinite(values[i])))
      throw Error(
          ErrorCode::kCorruptFile,
          fmt::format("model: element {} of tensor {} is {}; frequencies are divided by it, "
                      "so it must be above 0 and finite",
                      i, name, values[i]));
  return values;
}

// One list for all contexts, or separate lists for short and long ones. All are checked. llama.cpp
// rounds contexts up before it chooses: a context that ends in the block where the long ones begin
// is long, and so are all of files that state 0 for it.
std::vector<float> rope_divisors(const GgufFile& file, const Config& config, int64_t context) {
  const std::vector<float> all = read_divisors(file, config, "rope_freqs.weight"),
                           shorter = read_divisors(file, config, "rope_factors_short.weight"),
                           longer = read_divisors(file, config, "rope_factors_long.weight");
  if (!config.rope_divisors) return {};
  if (!all.empty()) return all;
  constexpr int64_t kBlock = 256;
  const int64_t rounded = (context + kBlock - 1) / kBlock * kBlock;
  const bool is_long =
      rounded > config_integer(file, "rope.scaling.original_context_length", config.context, 0,
                               std::numeric_limits<int64_t>::max());
  return is_long ? longer : shorter;
}

// The heads that files may have behind the last layer, whatever their architecture.
HeadWeights load_head(WeightLoader& from, const Config& config, const Device& device) {
  HeadWeights head;
  int64_t width = config.width;
  // A matrix of `width` columns; its rows are the width of what follows.
  const auto linear = [&](const std::string& name) -> Linear {
    const GgufTensor* found = from.file().find_tensor(name + ".weight");
    if (!found) return {};
    const int64_t rows = std::max<int64_t>(1, found->shape.elements() / width);
    Linear result{from.take(name + ".weight", {rows, width}, device),
                  from.take_if_there(name + ".bias", {rows}, device)};
    width = rows;
    return result;
  };
  head.inner = linear("cls");
  if (from.has("cls.norm.weight"))
    head.norm = {from.take("cls.norm.weight", {width}, device),
                 from.take_if_there("cls.norm.bias", {width}, device)};
  head.out = linear("cls.output");
  width = config.width;
  for (const char* name : {"dense_2", "dense_3"})
    if (const Linear dense = linear(name)) head.dense.push_back(dense);
  return head;
}

}  // namespace

Weights load_weights(const GgufFile& file, const Config& config, const Architecture& architecture,
                     const Placement& placement, const LoadCallback& progress,
                     const Adapters* adapters) {
  WeightLoader from(file, config, architecture.required_tensors(), placement, progress, adapters);
  Weights weights;
  const Shape table = {config.vocabulary, config.width};
  weights.embedding = from.take(embedding_name(file), table, placement.embedding);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    // A layer that runs again needs no second copy on the same devices.
    const auto own = static_cast<size_t>(layer), first = own % static_cast<size_t>(config.blocks());
    if (first < own && placement.layers[first] == placement.layers[own] &&
        (placement.experts.empty() || placement.experts[first] == placement.experts[own])) {
      weights.layers.push_back(weights.layers[first]);
      continue;
    }
    from.begin_layer(layer);
    architecture.load_layer(from, weights.layers.emplace_back());
  }
  architecture.load_ends(from, placement, weights);
  weights.head = load_head(from, config, placement.output);
  from.check_all_taken();
  weights.rope_divisors = rope_divisors(file, config, placement.context);
  weights.bytes = from.bytes();
  weights.names = from.names();
  return weights;
}

}  // namespace prism::llm
