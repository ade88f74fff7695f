// A trainable GPT.
#include "llm/train/gpt.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/grad.h"
#include "prism/nn/init.h"
#include "prism/nn/losses.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"

namespace prism::llm {

namespace {

constexpr int64_t kLogitsAtOnce = 1 << 26;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "model shape: " + message);
}

void check_size(const char* name, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    fail(fmt::format("{} is {}; it must be from 1 to {}", name, value, most));
}

}  // namespace

GptShape checked_shape(GptShape shape) {
  check_size("the vocabulary", shape.vocabulary, 1 << 24);
  check_size("the context", shape.context, 1 << 24);
  check_size("the number of layers", shape.layers, 4096);
  check_size("the width", shape.width, 1 << 20);
  check_size("the number of heads", shape.heads, shape.width);
  if (shape.width % (2 * shape.heads) != 0)
    fail(
        fmt::format("a width of {} for {} heads; the width must be a multiple of twice the heads, "
                    "since rotary positions turn pairs of elements",
                    shape.width, shape.heads));
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  check_size("the number of key and value heads", shape.kv_heads, shape.heads);
  if (shape.heads % shape.kv_heads != 0)
    fail(fmt::format("{} heads cannot share {} key and value heads evenly", shape.heads,
                     shape.kv_heads));
  if (shape.feed_forward == 0) shape.feed_forward = (shape.width * 8 / 3 + 31) / 32 * 32;
  check_size("the width of the feed-forward block", shape.feed_forward, 1 << 24);
  if (!(shape.dropout >= 0 && shape.dropout < 1))
    fail(fmt::format("dropout is {}; it must be at least 0 and below 1", shape.dropout));
  if (parameter_count(shape) > int64_t{1} << 40)
    fail(
        fmt::format("{} parameters are more than any machine can train; use fewer layers or a "
                    "smaller width",
                    parameter_count(shape)));
  return shape;
}

int64_t parameter_count(const GptShape& s) {
  const int64_t head = s.width / s.heads;
  const int64_t attention = 2 * s.width * s.width + 2 * s.width * s.kv_heads * head;
  const int64_t layer = attention + 3 * s.width * s.feed_forward + 2 * s.width;
  return s.layers * layer + s.width + (s.tied ? 1 : 2) * s.vocabulary * s.width;
}

GptBlock::GptBlock(const GptShape& shape, const Device& device)
    : attention_norm(shape.width, shape.norm_epsilon, device),
      attention(shape.width, shape.heads,
                {.kv_heads = shape.kv_heads,
                 .bias = false,
                 .rotary_base = shape.rope_base,
                 .rotary_pairing = RopePairing::adjacent,
                 .dropout = shape.dropout},
                device),
      feed_forward_norm(shape.width, shape.norm_epsilon, device),
      gate(shape.width, shape.feed_forward, false, device),
      up(shape.width, shape.feed_forward, false, device),
      down(shape.feed_forward, shape.width, false, device),
      dropout(shape.dropout) {}

Tensor GptBlock::operator()(const Tensor& x) {
  const Tensor mixed = x + attention(attention_norm(x));
  const Tensor inner = feed_forward_norm(mixed);
  return mixed + dropout(down(swiglu(gate(inner), up(inner))));
}

Gpt::Gpt(const GptShape& shape, const Device& device)
    : shape_(checked_shape(shape)),
      tokens(shape_.vocabulary, shape_.width, device),
      dropout(shape_.dropout),
      norm(shape_.width, shape_.norm_epsilon, device),
      output(shape_.width, shape_.tied ? 1 : shape_.vocabulary, false, device) {
  blocks.reserve(static_cast<size_t>(shape_.layers));
  for (int64_t i = 0; i < shape_.layers; ++i) blocks.emplace_back(shape_, device);
  if (shape_.tied) output.weight = tokens.weight;
  const double smaller = 0.02 / std::sqrt(2.0 * static_cast<double>(shape_.layers));
  for (auto& [name, parameter] : named_parameters()) {
    const bool adds = name.ends_with("attention.output.weight") || name.ends_with("down.weight");
    if (parameter.ndim() == 2) nn::init::normal(parameter, 0, adds ? smaller : 0.02);
  }
}

Tensor Gpt::operator()(const Tensor& ids) { return output(hidden(ids)); }

Tensor Gpt::loss(const Tensor& ids, const Tensor& targets) {
  const auto scores = [this](const Tensor& x) { return output(x); };
  const int64_t rows = std::max<int64_t>(1, kLogitsAtOnce / shape_.vocabulary);
  return nn::chunked_cross_entropy(hidden(ids), scores, targets, {}, rows);
}

Tensor Gpt::hidden(const Tensor& ids) {
  Tensor x = dropout(tokens(ids));
  for (GptBlock& each : blocks) {
    const auto layer = [&each](std::span<const Tensor> in) { return each(in[0]); };
    x = recompute_ ? recompute(layer, {x}) : each(x);
  }
  return norm(x);
}

}  // namespace prism::llm
