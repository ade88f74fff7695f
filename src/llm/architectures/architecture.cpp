// The list of architectures and the default embedding, final norm and logits.
#include "llm/architectures/architecture.h"

#include <array>

#include <fmt/format.h>

#include "llm/architectures/blocks.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"

namespace prism::llm {

namespace {

struct Known {
  std::string_view name;
  std::unique_ptr<Architecture> (*make)();
};

constexpr std::array kKnown = {
    Known{"llama", make_llama},     Known{"qwen2", make_qwen2},
    Known{"qwen3", make_qwen3},     Known{"qwen3moe", make_qwen3moe},
    Known{"gemma2", make_gemma2},   Known{"gemma3", make_gemma3},
    Known{"phi3", make_phi3},       Known{"gpt-oss", make_gpt_oss},
    Known{"smollm3", make_smollm3}, Known{"granite", make_granite},
    Known{"bert", make_bert},
};

}  // namespace

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const Known& each : kKnown) names.push_back(each.name);
  return names;
}

std::unique_ptr<Architecture> make_architecture(const std::string& name) {
  for (const Known& each : kKnown)
    if (each.name == name) return each.make();
  throw Error(ErrorCode::kNotSupported,
              fmt::format("model: architecture \"{}\" is not supported; supported are {}", name,
                          fmt::join(known_architectures(), ", ")));
}

void Architecture::load_ends(WeightLoader& from, const Placement& placement,
                             Weights& weights) const {
  const Config& config = from.config();
  weights.output_norm.weight = from.take("output_norm.weight", {config.width}, placement.output);
  weights.output_norm.bias =
      from.take_if_there("output_norm.bias", {config.width}, placement.output);
  const Shape table = {config.vocabulary, config.width};
  if (from.has("output.weight"))
    weights.output = from.take("output.weight", table, placement.output);
  else if (placement.output == placement.embedding)
    weights.output = weights.embedding;
  else
    weights.output = from.take("token_embd.weight", table, placement.output);
}

Tensor Architecture::embed(Blocks& blocks) const {
  const Tensor& table = blocks.weights().embedding;
  Tensor x = gather_rows(table, blocks.tokens(table.device()));
  if (!(x.type() == ElementType(DType::f32))) x = cast(x, DType::f32);
  const double scale = blocks.config().embedding_scale;
  return scale == 1 ? x : x * scale;
}

Tensor Architecture::hidden(Blocks& blocks, const Tensor& x) const {
  return blocks.norm(x, blocks.weights().output_norm);
}

Tensor Architecture::logits(Blocks& blocks, const Tensor& hidden) const {
  const Config& config = blocks.config();
  Tensor logits = linear(hidden, blocks.weights().output);
  if (config.logit_scale != 1) logits = logits * config.logit_scale;
  if (config.logit_soft_cap > 0)
    logits = tanh(logits / config.logit_soft_cap) * config.logit_soft_cap;
  return logits;
}

void PreNormArchitecture::load_layer(WeightLoader& from, LayerWeights& layer) const {
  layer.attention_norm = from.norm("attn_norm");
  from.attention(layer);
  layer.feed_forward_norm = from.norm("ffn_norm");
  if (from.config().experts > 0)
    from.experts(layer);
  else
    from.feed_forward(layer);
}

Tensor PreNormArchitecture::layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const {
  const double scale = blocks.config().residual_scale;
  const auto onto = [&](const Tensor& base, const Tensor& added) {
    return base + (scale == 1 ? added : added * scale);
  };
  const Tensor seen = onto(x, blocks.attention(w, blocks.norm(x, w.attention_norm)));
  const Tensor normed = blocks.norm(seen, w.feed_forward_norm);
  return onto(seen, w.router ? blocks.experts(w, normed, Gating::silu)
                             : blocks.feed_forward(w, normed, Gating::silu));
}

}  // namespace prism::llm
