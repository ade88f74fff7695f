// Trainable GPTs as model files.
#include "llm/train/gpt_file.h"

#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "llm/architectures/model_config.h"
#include "prism/error.h"
#include "prism/ops/assign.h"
#include "prism/ops/quantise.h"

namespace prism::llm {

namespace {

// The model's parameters by the names of model files. Gpt rotates adjacent elements as `llama`
// does, so no rows change places.
std::vector<std::pair<std::string, Tensor>> named_weights(Gpt& model) {
  std::vector<std::pair<std::string, Tensor>> result = {{"token_embd.weight", model.tokens.weight}};
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    GptBlock& block = model.blocks[i];
    const auto add = [&](const char* name, const Tensor& tensor) {
      result.emplace_back(fmt::format("blk.{}.{}.weight", i, name), tensor);
    };
    add("attn_norm", block.attention_norm.weight);
    add("attn_q", block.attention.query.weight);
    add("attn_k", block.attention.key.weight);
    add("attn_v", block.attention.value.weight);
    add("attn_output", block.attention.output.weight);
    add("ffn_norm", block.feed_forward_norm.weight);
    add("ffn_gate", block.gate.weight);
    add("ffn_up", block.up.weight);
    add("ffn_down", block.down.weight);
  }
  result.emplace_back("output_norm.weight", model.norm.weight);
  if (!model.shape().tied) result.emplace_back("output.weight", model.output.weight);
  return result;
}

[[noreturn]] void cannot_train(const GgufFile& file, const std::string& reason) {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{}: its weights cannot be trained: {}; plain models of the architecture "
                          "llama can",
                          file.path(), reason));
}

}  // namespace

void write_shape(const GptShape& shape, const std::string& name, GgufWriter& to) {
  const auto count = [&](const char* key, int64_t value) {
    to.set(fmt::format("llama.{}", key), static_cast<uint32_t>(value));
  };
  to.set("general.architecture", "llama");
  to.set("general.type", "model");
  to.set("general.name", name);
  to.set("general.file_type", uint32_t{0});  // all f32
  count("context_length", shape.context);
  count("embedding_length", shape.width);
  count("block_count", shape.layers);
  count("feed_forward_length", shape.feed_forward);
  count("attention.head_count", shape.heads);
  count("attention.head_count_kv", shape.kv_heads);
  count("rope.dimension_count", shape.width / shape.heads);
  count("vocab_size", shape.vocabulary);
  to.set("llama.attention.layer_norm_rms_epsilon", static_cast<float>(shape.norm_epsilon));
  to.set("llama.rope.freq_base", static_cast<float>(shape.rope_base));
}

void add_weights(Gpt& model, GgufWriter& to) {
  for (const auto& named : named_weights(model))
    to.add_tensor(named.first, named.second.shape(), DType::f32,
                  [tensor = named.second](const GgufWriter::Sink& sink) {
                    const std::vector<float> values = tensor.detach().to_vector<float>();
                    sink(std::as_bytes(std::span(values)));
                  });
}

GptShape shape_of(const GgufFile& file) {
  const std::string architecture(file.string("general.architecture"));
  if (architecture != "llama") cannot_train(file, "its architecture is " + architecture);
  const Config config = model_config(file, *make_architecture(architecture));
  if (config.experts > 0) cannot_train(file, "it has experts");
  if (config.rope_scaling.kind != RopeScaling::Kind::none || file.find_tensor("rope_freqs.weight"))
    cannot_train(file, "its rotary positions are scaled");
  GptShape shape{.vocabulary = config.vocabulary,
                 .context = config.context,
                 .layers = config.layers,
                 .width = config.width,
                 .heads = config.heads,
                 .kv_heads = config.kv_heads,
                 .feed_forward = config.feed_forward,
                 .tied = !file.find_tensor("output.weight"),
                 .rope_base = config.rope_base,
                 .norm_epsilon = config.norm_epsilon};
  const bool is_usual = config.head_dim * config.heads == config.width &&
                        config.rope_dims == config.head_dim && config.window == 0 &&
                        config.attention_scale == 0 && config.embedding_scale == 1 &&
                        config.residual_scale == 1 && config.logit_scale == 1;
  if (!is_usual) cannot_train(file, "its layers differ from the usual");
  return checked_shape(shape);
}

void load_weights(const GgufFile& file, Gpt& model) {
  nn::StateDict state;
  std::set<std::string> known;
  for (const auto& [name, tensor] : named_weights(model)) {
    const GgufTensor* const found = file.find_tensor(name);
    if (!found)
      throw Error(ErrorCode::kCorruptFile, fmt::format("{}: no tensor {}", file.path(), name));
    if (!(found->shape == tensor.shape()))
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: tensor {} has shape {}, its hyperparameters ask for {}",
                              file.path(), name, found->shape.text(), tensor.shape().text()));
    known.insert(name);
  }
  for (const GgufTensor& each : file.tensors())
    if (!known.contains(each.name)) cannot_train(file, "it has the tensor " + each.name);
  std::vector<Tensor> copies;
  const NoGrad off;
  for (const auto& [name, tensor] : named_weights(model)) {
    const Tensor stored = file.tensor(*file.find_tensor(name));
    const Tensor plain = stored.dtype().is_block() ? dequantise(stored) : stored;
    copies.push_back(assign(tensor, plain.astype(DType::f32).to(tensor.device())));
  }
  eval(copies);
}

}  // namespace prism::llm
