// The forward pass of a model with a trainable adapter, built from the blocks of inference.
#include "llm/train/lora_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "llm/architectures/model_config.h"
#include "llm/architectures/training_types.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/nn/init.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"

namespace prism::llm {
namespace {

[[noreturn]] void not_supported(const Config& config, const std::string& why) {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("train: an adapter for {} cannot be trained: {}. Transformers such as "
                          "llama, qwen2, qwen3, gemma2 and phi3 can",
                          config.architecture, why));
}

void check_architecture(const Config& config) {
  if (config.has_states()) not_supported(config, "its recurrent layers have no gradient");
  if (config.has_decoder()) not_supported(config, "attention to its encoder has no gradient");
  if (!config.causal) not_supported(config, "it does not write text");
  if (config.own_adapters > 0) not_supported(config, "it has adapters of its own");
  if (config.streams > 1) not_supported(config, "its mix of residual streams has no gradient");
  for (const LayerConfig& layer : config.each_layer)
    if (layer.indexer > 0 || layer.chosen)
      not_supported(config, "its choice of keys has no gradient");
}

// "attn_q" for "blk.3.attn_q.weight", "output" for "output.weight".
std::string_view short_name(std::string_view name) {
  if (name.starts_with("blk.")) name.remove_prefix(name.find('.', 4) + 1);
  return name.substr(0, name.rfind('.'));
}

bool is_chosen(const Linear& linear, const std::vector<std::string>& patterns) {
  const std::string_view name = short_name(linear.name);
  const bool is_special = linear.weight.rank() != 2 || name.find("_inp") != name.npos;
  return std::ranges::any_of(patterns, [&](const std::string& each) {
    return is_special ? name == each : !each.empty() && name.starts_with(each);
  });
}

}  // namespace

std::vector<Linear*> LoraModel::chosen() {
  std::set<std::string_view> names;
  const auto find = [&](const std::vector<std::string>& patterns) {
    std::vector<Linear*> result;
    for_each_linear(weights_, [&](Linear& each) {
      if (each.name.empty()) return;
      names.insert(short_name(each.name));
      if (is_chosen(each, patterns)) result.push_back(&each);
    });
    return result;
  };
  if (options_.matrices.empty()) {
    options_.matrices = {"ffn"};
    if (find(options_.matrices).empty()) options_.matrices = {"attn"};
  }
  const std::vector<Linear*> result = find(options_.matrices);
  if (!result.empty()) return result;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("train: no matrix of the model has a name that begins with {}; it has {}",
                          fmt::join(options_.matrices, ", "), fmt::join(names, ", ")));
}

LoraModel::LoraModel(const GgufFile& file, const LoraOptions& options, const Device& device,
                     int64_t context)
    : options_(options), device_(device), compute_(layer_type(device)), dropout_(options.dropout) {
  if (options.rank < 1 || !std::isfinite(options.alpha) || options.alpha == 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("train: an adapter of rank {} and alpha {}; the rank must be at least "
                            "1, alpha finite and not 0",
                            options.rank, options.alpha));
  architecture_ = make_architecture(std::string(file.string("general.architecture")));
  config_ = model_config(file, *architecture_);
  check_architecture(config_);
  weights_ = load_weights(file, config_, *architecture_, place_on(file, device, context), {});
  ropes_ = make_rope_tables(config_, weights_, {device});
  for (Linear* const each : chosen()) {
    Shape a = each->weight.shape(), b = a;
    if (std::min(a[-2], a[-1]) < options.rank)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("train: rank {} exceeds {}, the smaller side of {}", options.rank,
                              std::min(a[-2], a[-1]), each->name));
    a[-2] = options.rank, b[-1] = options.rank;
    Pair pair = {each, zeros(a, DType::f32, device), zeros(b, DType::f32, device)};
    pair.a.eval(), pair.b.eval();
    const double most = 1 / std::sqrt(static_cast<double>(a[-1]));
    nn::init::uniform(pair.a, -most, most);
    pair.a.set_requires_grad();
    pair.b.set_requires_grad();
    pairs_.push_back(pair);
  }
  check_gradients();
}

// Builds the graph of a gradient, which is not run.
void LoraModel::check_gradients() {
  try {
    const Tensor tokens = zeros({1, 2}, DType::i32, device_);
    gradients(sum(logits(tokens)), parameters());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotSupported) throw;
    not_supported(config_, error.what());
  }
}

Tensor LoraModel::logits(const Tensor& tokens, const Tensor& wanted) {
  const int64_t sequences = tokens.size(0), length = tokens.size(1), rows = sequences * length;
  const double scale = options_.alpha / static_cast<double>(options_.rank);
  for (const Pair& each : pairs_) {
    each.linear->lora_a = cast(each.a, compute_);
    each.linear->lora_b = cast(each.b * scale, compute_);
  }
  TrainingBatch batch;
  batch.tokens = tokens.reshape({rows});
  batch.positions = arange(0, static_cast<double>(length), 1, DType::i32, device_)
                        .unsqueeze(0)
                        .expand({sequences, length})
                        .reshape({rows});
  batch.sequences = sequences;
  batch.wanted = wanted;
  batch.adapter_input = [this](const Tensor& x) { return cast(dropout_(x), compute_); };
  Blocks blocks(config_, weights_, ropes_, batch);
  Tensor x = architecture_->embed(blocks);
  batch.compute = compute_;
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    blocks.enter_layer(layer);
    const auto run = [&](std::span<const Tensor> in) {
      return architecture_->layer(blocks, weights_.layers[static_cast<size_t>(layer)], in[0]);
    };
    x = options_.recompute ? recompute(run, {x}) : run({{x}});
  }
  batch.compute = DType::f32;  // for the output's norm and the logits
  return architecture_->logits(blocks, architecture_->hidden(blocks, blocks.wanted_rows(x)));
}

void LoraModel::visit(nn::Members& visitor) {
  for (Pair& each : pairs_) {
    visitor.member(each.linear->name + ".lora_a", each.a);
    visitor.member(each.linear->name + ".lora_b", each.b);
  }
  visitor.member("dropout", dropout_);
}

void LoraModel::write(const std::string& path) const {
  GgufWriter out;
  out.set("general.type", "adapter");
  out.set("general.architecture", config_.architecture);
  out.set("adapter.type", "lora");
  out.set("adapter.lora.alpha", static_cast<float>(options_.alpha));
  std::vector<std::vector<float>> kept;
  kept.reserve(2 * pairs_.size());  // views of them stay valid
  const auto add = [&](const std::string& name, const Tensor& factor) {
    kept.push_back(factor.to_vector<float>());
    out.add_tensor(name, factor.shape(), DType::f32, std::as_bytes(std::span(kept.back())));
  };
  for (const Pair& each : pairs_) {
    add(each.linear->name + ".lora_a", each.a);
    add(each.linear->name + ".lora_b", each.b);
  }
  out.write(path);
}

}  // namespace prism::llm
