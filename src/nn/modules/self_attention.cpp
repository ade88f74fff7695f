// Self-attention with causal mask, grouped heads and rotary positions.
#include <fmt/format.h>

#include "nn/train/step_context.h"
#include "prism/error.h"
#include "prism/nn/layers.h"
#include "prism/ops/attention.h"
#include "prism/ops/create.h"
#include "prism/ops/rope.h"

namespace prism::nn {

namespace {

int64_t checked_head(int64_t width, int64_t heads, int64_t kv_heads) {
  if (heads < 1 || width % heads != 0)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("SelfAttention: a width of {} does not divide into {} heads", width, heads));
  if (kv_heads < 0 || (kv_heads > 0 && heads % kv_heads != 0))
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("SelfAttention: {} heads do not divide into {} groups", heads, kv_heads));
  return width / heads;
}

int64_t kv_width(int64_t width, int64_t heads, int64_t kv_heads) {
  return checked_head(width, heads, kv_heads) * (kv_heads ? kv_heads : heads);
}

}  // namespace

SelfAttention::SelfAttention(int64_t width, int64_t count, const SelfAttentionOptions& given,
                             const Device& device)
    : heads(count),
      options(given),
      query(width, width, given.bias, device),
      key(width, kv_width(width, count, given.kv_heads), given.bias, device),
      value(width, kv_width(width, count, given.kv_heads), given.bias, device),
      output(width, width, given.bias, device),
      dropout(given.dropout) {}

Tensor SelfAttention::forward(const Tensor& x) {
  const int64_t width = query.weight.size(0), head = width / heads;
  if (x.ndim() != 3 || x.size(2) != width) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("SelfAttention: an input of shape {}; it must be [batch, length, {}]",
                            x.shape().text(), width));
  }
  const int64_t batch = x.size(0), length = x.size(1);
  Tensor positions, frequencies;
  if (options.rotary_base > 0) {
    positions = arange(length, DType::i32, x.device()).expand({batch, length});
    frequencies =
        from_vector(rope_frequencies(static_cast<uint32_t>(head), options.rotary_base).frequencies,
                    {head / 2}, x.device());
  }
  const Tensor input = in_compute_type(x);  // once for all three projections
  const auto in_heads = [&](Linear& projection, bool rotated) {
    Tensor y = projection(input).reshape({batch, length, -1, head});
    if (rotated && positions)
      y = in_compute_type(
          rope(y.astype(DType::f32), positions, frequencies, {.pairing = options.rotary_pairing}));
    return y.permute({0, 2, 1, 3});
  };
  AttentionSettings settings;
  settings.causal = options.causal;
  const Tensor mixed =
      attention(in_heads(query, true), in_heads(key, true), in_heads(value, false), settings);
  return dropout(output(mixed.permute({0, 2, 1, 3}).reshape({batch, length, width})));
}

std::string SelfAttention::text() const {
  return fmt::format("SelfAttention({}, {} heads{}{})", query.weight.size(0), heads,
                     options.kv_heads ? fmt::format(" in {} groups", options.kv_heads) : "",
                     options.rotary_base > 0 ? ", rotary" : "");
}

}  // namespace prism::nn
