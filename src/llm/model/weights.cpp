// Loads weights: checks names and shapes and places tensors on devices.
#include "llm/model/weights.h"

#include <fmt/format.h>

#include "llm/architectures/architecture.h"
#include "prism/error.h"

namespace prism::llm {

WeightLoader::WeightLoader(const GgufFile& file, const Config& config, const Placement& placement,
                           LoadCallback progress)
    : file_(file), config_(config), placement_(placement), progress_(std::move(progress)) {
  for (const GgufTensor& each : file.tensors()) done_.bytes_total += each.bytes;
}

Tensor WeightLoader::take_if_there(const std::string& name, const Shape& shape,
                                   const Device& device) {
  return has(name) ? take(name, shape, device) : Tensor();
}

Tensor WeightLoader::take(const std::string& name, const Shape& shape, const Device& device) {
  const GgufTensor* found = file_.find_tensor(name);
  if (!found)
    throw Error(ErrorCode::kNotFound,
                fmt::format("model: the file has no tensor {}, which {} needs; was it converted by "
                            "another version, or cut short?",
                            name, config_.architecture));
  Tensor tensor = file_.tensor(*found);
  if (!(tensor.shape() == shape)) {
    // A vector may be stored as a matrix of one row.
    if (tensor.elements() != shape.elements() || shape.rank() != 1)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("model: tensor {} has shape {}, the metadata requires {}", name,
                              tensor.shape().text(), shape.text()));
    tensor = tensor.reshape(shape);
  }
  if (!(device == tensor.device())) tensor = share(tensor, device);
  bytes_ += storage_bytes(shape, tensor.type(), device);
  done_.bytes_done += found->bytes;
  if (progress_ && !progress_(done_))
    throw Error(ErrorCode::kInvalidArgument, "model: loading was cancelled");
  return tensor;
}

void WeightLoader::begin_layer(int64_t layer) {
  layer_ = layer;
  device_ = placement_.layers[static_cast<size_t>(layer)];
  expert_device_ =
      placement_.experts.empty() ? device_ : placement_.experts[static_cast<size_t>(layer)];
}

std::string WeightLoader::in_layer(const std::string& name) const {
  return fmt::format("blk.{}.{}", layer_, name);
}

bool WeightLoader::has_in_layer(const std::string& name) const { return has(in_layer(name)); }

Norm WeightLoader::norm(const std::string& name) {
  const Shape shape = {config_.width};
  return {take(in_layer(name + ".weight"), shape, device_),
          take_if_there(in_layer(name + ".bias"), shape, device_)};
}

Norm WeightLoader::norm_if_there(const std::string& name) {
  return has_in_layer(name + ".weight") ? norm(name) : Norm();
}

Linear WeightLoader::linear(const std::string& name, int64_t out, int64_t in) {
  return {take(in_layer(name + ".weight"), {out, in}, device_),
          take_if_there(in_layer(name + ".bias"), {out}, device_)};
}

Tensor WeightLoader::vector_if_there(const std::string& name, int64_t length) {
  return take_if_there(in_layer(name), {length}, device_);
}

void WeightLoader::attention(LayerWeights& layer) {
  const int64_t q = config_.heads * config_.head_dim, kv = config_.kv_heads * config_.head_dim;
  if (has_in_layer("attn_qkv.weight")) {
    layer.qkv = linear("attn_qkv", q + 2 * kv, config_.width);
  } else {
    layer.q = linear("attn_q", q, config_.width);
    layer.k = linear("attn_k", kv, config_.width);
    layer.v = linear("attn_v", kv, config_.width);
  }
  layer.out = linear("attn_output", config_.width, q);
  layer.q_norm = vector_if_there("attn_q_norm.weight", config_.head_dim);
  layer.k_norm = vector_if_there("attn_k_norm.weight", config_.head_dim);
  layer.sinks = vector_if_there("attn_sinks.weight", config_.heads);
}

void WeightLoader::feed_forward(LayerWeights& layer) {
  const int64_t wide = config_.feed_forward, width = config_.width;
  if (has_in_layer("ffn_gate.weight")) layer.gate = linear("ffn_gate", wide, width);
  const GgufTensor* up = file_.find_tensor(in_layer("ffn_up.weight"));
  const bool both = !layer.gate && up && up->shape.rank() == 2 && up->shape[0] == 2 * wide;
  layer.up = linear("ffn_up", both ? 2 * wide : wide, width);
  layer.down = linear("ffn_down", width, wide);
}

Linear WeightLoader::expert_linear(const std::string& name, int64_t out, int64_t in) {
  return {take(in_layer(name + ".weight"), {config_.experts, out, in}, expert_device_),
          take_if_there(in_layer(name + ".bias"), {config_.experts, out}, expert_device_)};
}

void WeightLoader::experts(LayerWeights& layer) {
  const int64_t wide = config_.expert_feed_forward, width = config_.width;
  layer.router = linear("ffn_gate_inp", config_.experts, width);
  layer.expert_gate = expert_linear("ffn_gate_exps", wide, width);
  layer.expert_up = expert_linear("ffn_up_exps", wide, width);
  layer.expert_down = expert_linear("ffn_down_exps", width, wide);
}

void for_each_weight(const Weights& weights, const std::function<void(const Tensor&)>& use) {
  const auto each = [&](std::initializer_list<const Tensor*> tensors) {
    for (const Tensor* tensor : tensors)
      if (*tensor) use(*tensor);
  };
  each({&weights.embedding, &weights.position_embedding, &weights.type_embedding,
        &weights.embedding_norm.weight, &weights.embedding_norm.bias, &weights.output_norm.weight,
        &weights.output_norm.bias});
  if (weights.output && weights.output.node() != weights.embedding.node()) use(weights.output);
  for (const LayerWeights& layer : weights.layers) {
    for (const Norm* norm : {&layer.attention_norm, &layer.attention_post_norm,
                             &layer.feed_forward_norm, &layer.feed_forward_post_norm})
      each({&norm->weight, &norm->bias});
    for (const Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.qkv, &layer.out, &layer.gate, &layer.up, &layer.down,
          &layer.router, &layer.expert_gate, &layer.expert_up, &layer.expert_down})
      each({&linear->weight, &linear->bias});
    each({&layer.q_norm, &layer.k_norm, &layer.sinks});
  }
}

namespace {

// Divisors of the rotary frequencies: one list, or separate lists for short and long contexts.
std::vector<float> rope_divisors(const GgufFile& file, const Config& config, int64_t context) {
  const bool is_long = context > static_cast<int64_t>(config.rope_scaling.original_context);
  for (const char* name :
       {"rope_freqs.weight", is_long ? "rope_factors_long.weight" : "rope_factors_short.weight"}) {
    const GgufTensor* found = file.find_tensor(name);
    if (!found) continue;
    if (!(found->type == ElementType(DType::f32)) ||
        found->shape.elements() != config.rope_dims / 2)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("model: tensor {} is {} {}; it must be f32 [{}]", name,
                              found->type_name(), found->shape.text(), config.rope_dims / 2));
    return file.tensor(*found).to_vector<float>();
  }
  return {};
}

}  // namespace

Weights load_weights(const GgufFile& file, const Config& config, const Architecture& architecture,
                     const Placement& placement, const LoadCallback& progress) {
  WeightLoader from(file, config, placement, progress);
  Weights weights;
  const Shape table = {config.vocabulary, config.width};
  weights.embedding = from.take("token_embd.weight", table, placement.embedding);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    from.begin_layer(layer);
    architecture.load_layer(from, weights.layers.emplace_back());
  }
  architecture.load_ends(from, placement, weights);
  weights.rope_divisors = rope_divisors(file, config, placement.context);
  weights.bytes = from.bytes();
  return weights;
}

}  // namespace prism::llm
