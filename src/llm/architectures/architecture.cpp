// The list of architectures and the default embedding, final norm and logits.
#include "llm/architectures/architecture.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "llm/architectures/blocks.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/quantise.h"

namespace prism::llm {

namespace {

struct Known {
  std::string_view name;
  std::unique_ptr<Architecture> (*make)();
};

constexpr Known kKnown[] = {
#define PRISM_ARCHITECTURE(name, make, models) {name, make},
#include "llm/architectures/architecture_list.inc"
#undef PRISM_ARCHITECTURE
};

}  // namespace

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const Known& each : kKnown) names.push_back(each.name);
  return names;
}

bool is_known_architecture(std::string_view name) {
  return std::ranges::count(kKnown, name, &Known::name) > 0;
}

std::unique_ptr<Architecture> make_architecture(const std::string& name) {
  for (const Known& each : kKnown)
    if (each.name == name) return each.make();
  throw Error(ErrorCode::kNotSupported,
              fmt::format("model: architecture \"{}\" is not supported; supported are {}; "
                          "docs/models.md tells how to ask for another",
                          name, fmt::join(known_architectures(), ", ")));
}

std::string_view other_kind(std::string_view architecture) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::count(names, architecture) > 0;
  };
  if (is({"clip"}))
    return "the part of a model that sees or hears; name the GGUF file of its language model "
           "instead";
  if (is({"dflash", "eagle3", "gemma4-assistant"}))
    return "a draft that only works inside another model; name the GGUF file of that instead";
  if (is({"wavtokenizer-dec"})) return "a model that makes speech; Prism runs language models";
  if (is({"aura", "cosmos", "flux", "hidream", "hyvid", "ltxv", "lumina2", "qwen_image", "sd1",
          "sd3", "sdxl", "wan"}))
    return "a model that makes pictures; Prism runs language models";
  return {};
}

void check_architecture(const GgufFile& file) {
  if (file.string_or("general.type", "") == "imatrix")
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}: the file is an importance matrix, not a model; `prism model "
                            "quantize --imatrix` uses it",
                            file.path()));
  const std::string name(file.string("general.architecture"));
  if (const std::string_view kind = other_kind(name); !kind.empty())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}: the architecture \"{}\" is {}", file.path(), name, kind));
  if (!is_known_architecture(name)) make_architecture(name);  // throws
}

void Architecture::load_embeddings(WeightLoader& from, const Placement& placement,
                                   Weights& weights) {
  const Config& config = from.config();
  const Device& device = placement.embedding;
  weights.position_embedding =
      from.take_if_there("position_embd.weight", {config.context, config.width}, device);
  if (const GgufTensor* types = from.file().find_tensor("token_types.weight")) {
    const int64_t count = types->shape.rank() == 2 ? types->shape[0] : 1;
    weights.type_embedding =
        from.take("token_types.weight", {std::max<int64_t>(count, 1), config.width}, device);
  }
  if (from.has("token_embd_norm.weight"))
    weights.embedding_norm = from.take_norm("token_embd_norm", device);
}

void Architecture::load_output(WeightLoader& from, const Placement& placement, Weights& weights) {
  const Config& config = from.config();
  const Shape table = {config.vocabulary, config.width};
  const std::string embedding = embedding_name(from.file());
  if (from.has("output.weight") && embedding != "output.weight")
    weights.output = from.take_linear("output", table, placement.output);
  else if (placement.output == placement.embedding)
    weights.output.weight = weights.embedding;
  else
    weights.output.weight = from.take(embedding, table, placement.output);
  weights.output.bias = from.take_if_there("output.bias", {config.vocabulary}, placement.output);
}

void Architecture::load_ends(WeightLoader& from, const Placement& placement,
                             Weights& weights) const {
  load_embeddings(from, placement, weights);
  weights.output_norm = from.take_norm("output_norm", placement.output);
  load_output(from, placement, weights);
}

Tensor Architecture::embed(Blocks& blocks) const {
  const auto dense = [](const Tensor& rows) {
    return rows.type().is_block() ? dequantise(rows) : cast(rows, DType::f32);
  };
  const Weights& w = blocks.weights();
  const Device& device = w.embedding.device();
  Tensor x = gather_rows(w.embedding, blocks.tokens(device));
  if (!(x.type() == ElementType(DType::f32))) x = cast(x, DType::f32);
  const double scale = blocks.config().embedding_scale;
  if (scale != 1) x = x * scale;
  if (w.position_embedding)
    x = x + cast(gather_rows(w.position_embedding, blocks.positions(device)), DType::f32);
  // All tokens have token type 0.
  if (w.type_embedding) x = x + dense(w.type_embedding.slice(0, 0, 1));
  return w.embedding_norm ? blocks.norm(x, w.embedding_norm) : x;
}

Tensor Architecture::hidden(Blocks& blocks, const Tensor& x) const {
  return blocks.norm(x, blocks.weights().output_norm);  // without weights: the plain norm
}

Tensor Architecture::logits(Blocks& blocks, const Tensor& hidden) const {
  const Config& config = blocks.config();
  Tensor logits = blocks.project(hidden, blocks.weights().output);
  if (config.logit_scale != 1) logits = logits * config.logit_scale;
  if (config.logit_soft_cap > 0)
    logits = tanh(logits / config.logit_soft_cap) * config.logit_soft_cap;
  return logits;
}

void TransformerArchitecture::load_layer(WeightLoader& from, LayerWeights& layer) const {
  from.norms(norm_names(), layer);
  load_mixer(from, layer);
  if (from.config().at(from.layer()).experts)
    from.experts(layer);
  else
    from.feed_forward(layer);
}

Tensor TransformerArchitecture::mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const {
  return blocks.attention(w, x);
}

Tensor TransformerArchitecture::layer(Blocks& blocks, const LayerWeights& w,
                                      const Tensor& x) const {
  const double scale = blocks.config().residual_scale;
  const auto normed = [&](const Tensor& rows, const Norm& norm) {
    return norm ? blocks.norm(rows, norm) : rows;
  };
  const auto post_normed = [&](const Tensor& rows, const Norm& norm) {
    return norm ? blocks.post_norm(rows, norm) : rows;
  };
  const auto inner = [&](const Tensor& rows) {
    return post_normed(w.router ? blocks.experts(w, rows) : blocks.feed_forward(w, rows),
                       w.feed_forward_post_norm);
  };
  const auto onto = [&](const Tensor& base, const Tensor& added) {
    return base + (scale == 1 ? added : added * scale);
  };
  const Tensor input = normed(x, w.attention_norm);
  const Tensor seen = onto(x, post_normed(mix(blocks, w, input), w.attention_post_norm));
  if (blocks.config().parallel)
    return onto(seen, inner(w.feed_forward_norm ? blocks.norm(x, w.feed_forward_norm) : input));
  return onto(seen, inner(normed(seen, w.feed_forward_norm)));
}

}  // namespace prism::llm
