// Loads tensors: checks names and shapes and places them on devices.
#include "llm/model/weights.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "llm/gguf/gguf_types.h"
#include "llm/gguf/layer_names.h"
#include "llm/model/adapters.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/quantise.h"

namespace prism::llm {

namespace {

Shape without_ones(const Shape& shape) {
  Shape result;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1) result.append(shape[axis]);
  return result;
}

}  // namespace

WeightLoader::WeightLoader(const GgufFile& file, const Config& config,
                           const RequiredTensors& required, const Placement& placement,
                           LoadCallback progress, const Adapters* adapters)
    : file_(file),
      config_(config),
      required_(required),
      placement_(placement),
      adapters_(adapters),
      progress_(std::move(progress)) {
  for (const GgufTensor& each : file.tensors()) done_.bytes_total += each.bytes;
}

Tensor WeightLoader::take_if_there(const std::string& name, const Shape& shape,
                                   const Device& device) {
  return take(false, name, shape, device);
}

Tensor WeightLoader::take(bool is_required, const std::string& name, const Shape& shape,
                          const Device& device) {
  return is_required || has(name) ? take(name, shape, device) : Tensor();
}

Tensor WeightLoader::take_numbers(bool is_required, const std::string& name, const Shape& shape,
                                  const Device& device) {
  return is_required || has(name) ? take_numbers(name, shape, device) : Tensor();
}

Norm WeightLoader::take_norm(const std::string& name, const Device& device, int64_t length) {
  const Shape shape = {length > 0 ? length : config_.width};
  const bool is_bare = !has(name + ".weight") && has(name);  // some files leave ".weight" out
  return {take_numbers(is_bare ? name : name + ".weight", shape, device),
          take_numbers(required_.norm_bias, name + ".bias", shape, device)};
}

Tensor WeightLoader::take(const std::string& name, const Shape& shape, const Device& device) {
  const LowRank* const change = adapters_ ? adapters_->find(name) : nullptr;
  if (!change) return take_plain(name, shape, device);
  adapted_.insert(name);
  return placed(change->added_to(take_plain(name, shape, Device::cpu())), device);
}

Tensor WeightLoader::take_numbers(const std::string& name, const Shape& shape,
                                  const Device& device) {
  if (adapters_ && adapters_->find(name)) return take(name, shape, device);
  return take_plain(name, shape, device, true);
}

Linear WeightLoader::take_linear(const std::string& name, const Shape& shape,
                                 const Device& device) {
  Linear result = {take_plain(name + ".weight", shape, device)};
  result.name = name + ".weight";
  result.scale = scale_of(name, shape.rank() == 3 ? shape[0] : 1, device);
  if (const LowRank* const change = adapters_ ? adapters_->find(result.name) : nullptr) {
    adapted_.insert(result.name);
    result.lora_a = placed(change->a, device);
    result.lora_b = placed(change->b, device);
  }
  return result;
}

Tensor WeightLoader::placed(Tensor tensor, const Device& device) {
  tensor = tensor.contiguous();
  tensor.eval();
  bytes_ += storage_bytes(tensor.shape(), tensor.type(), device);
  return tensor.to(device);
}

Tensor WeightLoader::take_plain(const std::string& name, const Shape& shape, const Device& device,
                                bool as_numbers) {
  const GgufTensor* found = file_.find_tensor(name);
  if (!found)
    throw Error(ErrorCode::kNotFound,
                fmt::format("model: the file has no tensor {}, which {} needs; was it converted by "
                            "another version, or cut short?",
                            name, config_.architecture));
  taken_.insert(name);
  Tensor tensor = file_.tensor(*found);
  const ElementType type = as_numbers ? DType::f32 : loaded_type(tensor.type());
  if (type != tensor.type())
    tensor = (tensor.type().is_block() ? dequantise(tensor) : cast(tensor, type.plain())).eval();
  if (!(tensor.shape() == shape)) {
    // A vector may be stored as a matrix, and any tensor with more or fewer axes of length 1.
    if (tensor.elements() != shape.elements() ||
        (shape.rank() != 1 && !(without_ones(tensor.shape()) == without_ones(shape))))
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("model: tensor {} has shape {}, the metadata requires {}", name,
                              tensor.shape().text(), shape.text()));
    tensor = tensor.reshape(shape);
  }
  if (!(device == tensor.device())) tensor = share(tensor, device);
  bytes_ += storage_bytes(shape, tensor.type(), device);
  names_[tensor.node().get()] = name;
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
  return fmt::format("{}.{}", config_.layer_name(layer_), name);
}

bool WeightLoader::has_in_layer(const std::string& name) const { return has(in_layer(name)); }

Norm WeightLoader::norm(const std::string& name, int64_t length) {
  return take_norm(in_layer(name), device_, length);
}

void WeightLoader::norms(const NormNames& names, LayerWeights& layer) {
  const auto load = [&](const char* name, Norm& into) {
    if (*name) into = norm(name);
  };
  load(names.attention, layer.attention_norm);
  load(names.attention_post, layer.attention_post_norm);
  load(names.feed_forward, layer.feed_forward_norm);
  load(names.feed_forward_post, layer.feed_forward_post_norm);
}

Linear WeightLoader::linear(const std::string& name, int64_t out, int64_t in, bool needs_bias) {
  Linear result = take_linear(in_layer(name), {out, in}, device_);
  result.bias = take(needs_bias, in_layer(name + ".bias"), {out}, device_);
  return result;
}

Tensor WeightLoader::scale_of(const std::string& name, int64_t count, const Device& device) {
  const GgufTensor* found = file_.find_tensor(name + ".scale");
  // gemma4 has a vector of this name beside its router: not a factor of the matrix.
  if (!found || found->shape.elements() != count) return {};
  return take(found->name, {count}, device);
}

Tensor WeightLoader::vector(bool is_required, const std::string& name, int64_t length) {
  return take_numbers(is_required, in_layer(name + ".weight"), {length}, device_);
}

Norm WeightLoader::head_norm(const std::string& name, int64_t heads) {
  const GgufTensor* found = file_.find_tensor(in_layer(name + ".weight"));
  if (!found && !required_.head_norms) return {};
  const int64_t dim = config_.at(layer_).head_dim;
  Shape shape = {dim};
  if (found && found->shape.elements() == heads * dim && heads > 1) {
    shape = {heads * dim};
    if (found->shape.rank() == 2) shape = {heads, dim};
  }
  Norm result = {take_numbers(in_layer(name + ".weight"), shape, device_),
                 take_numbers(false, in_layer(name + ".bias"), shape, device_)};
  if (required_.no_head_norm_bias) result.bias = {};
  return result;
}

void WeightLoader::attention(LayerWeights& layer, bool with_head_norms) {
  const LayerConfig& sizes = config_.at(layer_);
  const int64_t q = sizes.heads * sizes.head_dim, k = sizes.kv_heads * sizes.head_dim,
                v = sizes.kv_heads * sizes.value_dim, out = sizes.heads * sizes.value_dim;
  // A bias that another layer has cannot be left out: it was lost.
  const auto needs_bias = [&](const char* name) {
    return required_.qkv_bias || std::ranges::any_of(file_.tensors(), [&](const GgufTensor& each) {
             return each.name.starts_with("blk.") && each.name.ends_with(std::string(".") + name);
           });
  };
  if (sizes.latent > 0) {
    latent(layer);
  } else if (sizes.cache_of >= 0) {
    layer.q = linear("attn_q", q, config_.width);
    // Some files have the matrices that would make the keys and values, too.
    for (const char* name :
         {"attn_k.weight", "attn_v.weight", "attn_k.bias", "attn_v.bias", "attn_k_norm.weight"})
      leave_out(name);
  } else if (has_in_layer("attn_qkv.weight")) {
    layer.qkv = linear("attn_qkv", std::max(q + k + v, config_.qkv_rows), config_.width,
                       needs_bias("attn_qkv.bias"));
  } else {
    layer.q =
        linear("attn_q", config_.q_has_gate ? 2 * q : q, config_.width, needs_bias("attn_q.bias"));
    layer.k = linear("attn_k", k, config_.width, needs_bias("attn_k.bias"));
    if (!required_.keys_are_values || has_in_layer("attn_v.weight"))
      layer.v = linear("attn_v", v, config_.width, needs_bias("attn_v.bias"));
  }
  layer.out = linear("attn_output", config_.width, out, required_.output_bias);
  if (required_.no_qkv_bias)
    for (Linear* const each : {&layer.q, &layer.k, &layer.v, &layer.qkv}) each->bias = {};
  if (required_.no_output_bias) layer.out.bias = {};
  if (with_head_norms) layer.q_norm = head_norm("attn_q_norm", sizes.heads);
  if (with_head_norms && sizes.cache_of < 0 && sizes.latent == 0)
    layer.k_norm = head_norm("attn_k_norm", sizes.kv_heads);
  layer.sinks = vector(required_.sinks, "attn_sinks", sizes.heads);
  if (const GgufTensor* gate = file_.find_tensor(in_layer("attn_gate.weight")))
    layer.attention_gate = linear(
        "attn_gate", gate->shape.elements() == sizes.heads * config_.width ? sizes.heads : out,
        config_.width);
  if (sizes.indexer > 0) indexer(layer);
}

void WeightLoader::latent(LayerWeights& layer) {
  const LayerConfig& sizes = config_.at(layer_);
  LatentWeights& to = layer.latent;
  const int64_t q = sizes.heads * sizes.head_dim, rank = sizes.latent;
  const int64_t plain = sizes.head_dim - config_.rope_dims;
  if (config_.q_rank > 0 && has_in_layer("attn_q_a.weight")) {
    to.q_a = linear("attn_q_a", config_.q_rank, config_.width);
    to.q_norm = norm("attn_q_a_norm", config_.q_rank);
    to.q_b = linear("attn_q_b", q, config_.q_rank);
  } else {
    layer.q = linear("attn_q", q, config_.width);
  }
  to.kv_a = linear("attn_kv_a_mqa", rank + config_.rope_dims, config_.width);
  to.kv_norm = norm("attn_kv_a_norm", rank);
  if (has_in_layer("attn_k_b.weight")) {
    to.k_b = take(in_layer("attn_k_b.weight"), {sizes.heads, rank, plain}, device_);
    to.v_b = take(in_layer("attn_v_b.weight"), {sizes.heads, sizes.value_dim, rank}, device_);
    leave_out("attn_kv_b.weight");
    return;
  }
  // Both in one matrix, of which queries need the transposed half: rows of blocks cannot be read
  // across, so it is unpacked.
  const int64_t each = plain + sizes.value_dim;
  const Tensor both = take(in_layer("attn_kv_b.weight"), {sizes.heads * each, rank}, Device::cpu());
  const Tensor wide =
      (both.type().is_block() ? dequantise(both) : both).reshape({sizes.heads, each, rank});
  const auto placed = [&](const Tensor& part) {
    const Tensor made = cast(part, DType::f32).contiguous();
    made.eval();
    return made.to(device_);
  };
  if (plain > 0) to.k_b = placed(wide.slice(1, 0, plain).transpose());
  to.v_b = placed(wide.slice(1, plain, each));
}

void WeightLoader::indexer(LayerWeights& layer) {
  IndexerWeights& to = layer.indexer;
  const int64_t dim = config_.at(layer_).indexer, heads = config_.indexer_heads;
  if (has_in_layer("indexer.q_proj.weight")) {
    to.q = linear("indexer.q_proj", heads * dim, config_.width);
    to.k = linear("indexer.k_proj", dim, config_.width);
    to.q_norm = norm("indexer.q_norm", dim);
  } else {
    to.q = linear("indexer.attn_q_b", heads * dim, config_.q_rank);
    to.k = linear("indexer.attn_k", dim, config_.width);
    to.head_weights = linear("indexer.proj", heads, config_.width);
  }
  to.k_norm = norm("indexer.k_norm", dim);
}

CompressorWeights WeightLoader::compressor(const std::string& name, int64_t length) {
  const LayerConfig& sizes = config_.at(layer_);
  const int64_t rows = sizes.indexer > 0 ? 2 * length : length;
  CompressorWeights result;
  result.values = linear(name + "_kv", rows, config_.width);
  result.scores = linear(name + "_gate", rows, config_.width);
  result.places = take_numbers(in_layer(name + "_ape.weight"), {sizes.compression, rows}, device_);
  result.norm = norm(name + "_norm", length);
  return result;
}

void WeightLoader::feed_forward(LayerWeights& layer) {
  const int64_t wide = config_.at(layer_).feed_forward, width = config_.width;
  const bool bias = required_.feed_forward_bias;
  const GgufTensor* up = file_.find_tensor(in_layer("ffn_up.weight"));
  const bool both = required_.gate && !has_in_layer("ffn_gate.weight") && up &&
                    up->shape.rank() == 2 && up->shape[0] == 2 * wide;
  if (required_.gate && !both) layer.gate = linear("ffn_gate", wide, width, bias);
  layer.up = linear("ffn_up", both ? 2 * wide : wide, width, bias);
  layer.down = linear("ffn_down", width, wide, bias);
  if (required_.no_feed_forward_bias)
    for (Linear* const each : {&layer.gate, &layer.up, &layer.down}) each->bias = {};
}

void WeightLoader::feed_forward_or_experts(LayerWeights& layer) {
  if (!has_in_layer("ffn_gate_inp.weight")) return feed_forward(layer);
  experts(layer);
  for (const char* name : {"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}) leave_out(name);
}

Linear WeightLoader::expert_linear(const std::string& name, int64_t out, int64_t in) {
  Linear result = take_linear(in_layer(name), {config_.experts, out, in}, expert_device_);
  result.bias = take(required_.feed_forward_bias, in_layer(name + ".bias"), {config_.experts, out},
                     expert_device_);
  return result;
}

void WeightLoader::experts(LayerWeights& layer) {
  const int64_t wide = config_.expert_feed_forward, width = config_.width;
  const int64_t inner = config_.expert_width > 0 ? config_.expert_width : width;
  layer.router = linear("ffn_gate_inp", config_.experts, width, required_.feed_forward_bias);
  for (const char* name : {"exp_probs_b.bias", "exp_probs_b"})
    if (has_in_layer(name)) layer.expert_bias = take(in_layer(name), {config_.experts}, device_);
  layer.experts_of_token = take(false, in_layer("ffn_gate_tid2eid.weight"),
                                {config_.vocabulary, config_.experts_used}, device_);
  if (has_in_layer("ffn_gate_up_exps.weight")) {
    layer.expert_up = expert_linear("ffn_gate_up_exps", 2 * wide, inner);
  } else {
    if (required_.gate && (required_.expert_gate || has_in_layer("ffn_gate_exps.weight")))
      layer.expert_gate = expert_linear("ffn_gate_exps", wide, inner);
    layer.expert_up = expert_linear("ffn_up_exps", wide, inner);
  }
  layer.expert_down = expert_linear("ffn_down_exps", inner, wide);
  const int64_t shared = config_.shared_feed_forward;
  if (shared == 0 || (!required_.shared_expert && !has_in_layer("ffn_up_shexp.weight"))) return;
  // Some files have the gate in the first rows of the other matrix.
  const GgufTensor* const up = file_.find_tensor(in_layer("ffn_up_shexp.weight"));
  const bool is_fused = up && !has_in_layer("ffn_gate_shexp.weight") && up->shape.rank() == 2 &&
                        up->shape[0] == 2 * shared;
  if (required_.gate && !is_fused) layer.shared_gate = linear("ffn_gate_shexp", shared, width);
  layer.shared_up = linear("ffn_up_shexp", is_fused ? 2 * shared : shared, width);
  layer.shared_down = linear("ffn_down_shexp", width, shared);
  if (has_in_layer("ffn_gate_inp_shexp.weight"))
    layer.shared_router.weight =
        take(in_layer("ffn_gate_inp_shexp.weight"), {width}, device_).reshape({1, width});
}

Tensor LayerWeights::other(std::string_view name) const {
  const auto found = others.find(name);
  return found == others.end() ? Tensor() : found->second;
}

const Linear& LayerWeights::matrix(std::string_view name) const {
  static const Linear kNone;
  const auto found = matrices.find(name);
  return found == matrices.end() ? kNone : found->second;
}

Tensor WeightLoader::take_in_layer(const std::string& name, const Shape& shape) {
  return take(in_layer(name), shape, device_);
}

void WeightLoader::keep(LayerWeights& layer, const std::string& name, const Shape& shape) {
  layer.others[name] = take_numbers(in_layer(name), shape, device_);
}

void WeightLoader::keep_if_there(LayerWeights& layer, const std::string& name, const Shape& shape) {
  if (has_in_layer(name)) keep(layer, name, shape);
}

void WeightLoader::keep_matrix(LayerWeights& layer, const std::string& name, const Shape& shape) {
  layer.matrices[name] = take_linear(in_layer(name), shape, device_);
}

void WeightLoader::leave_out(const std::string& name) {
  taken_.insert(in_layer(name));
  if (name.ends_with(".weight"))
    taken_.insert(in_layer(name.substr(0, name.rfind('.')) + ".scale"));
}

void WeightLoader::check_all_taken() const {
  // Frequencies are read as numbers; those that converters of old wrote for each layer follow from
  // their base. Scales of inputs are for hardware that multiplies 4-bit floats; here inputs have
  // scales of their own.
  const auto is_harmless = [](std::string_view name) {
    return name == "rope_freqs.weight" || name.starts_with("rope_factors_") ||
           name.ends_with(".attn_rot_embd.weight") || name.ends_with(".input_scale");
  };
  // Layers of the file beyond the last propose tokens (leave_out_proposing_layers).
  const int64_t in_file = file_.integer_or(config_.architecture + ".block_count", 0);
  const auto proposes = [&](std::string_view name) {
    const int64_t layer = name.starts_with("blk.") ? layer_of_tensor(name) : -1;
    return layer >= config_.blocks() && layer < in_file;
  };
  for (const GgufTensor& each : file_.tensors())
    if (!taken_.contains(each.name) && !is_harmless(each.name) && !proposes(each.name))
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("model: the file has a tensor {} that Prism's {} does not use, so "
                              "its text would be wrong; please report the model",
                              printable(each.name), config_.architecture));
  if (adapters_) adapters_->check_all_used(adapted_);
}

}  // namespace prism::llm
