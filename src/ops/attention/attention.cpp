// Attention: the op over a KV cache, and a composition of other ops for gradients.
#include "prism/ops/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_op.h"
#include "ops/products/product_kernels.h"
#include "prism/error.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/softmax.h"
#include "tensor/alias.h"
#include "tensor/chain/chain_op.h"
#include "tensor/recompute.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

bool is_type(const Tensor& x, DType type) { return x.type() == ElementType(type); }

// The position of each key, and of each query as a column.
Tensor key_positions(int64_t keys, const Device& device) {
  return arange(0, static_cast<double>(keys), 1, DType::i32, device);
}
Tensor query_positions(int64_t queries, int64_t keys, const Device& device) {
  return arange(static_cast<double>(keys - queries), static_cast<double>(keys), 1, DType::i32,
                device)
      .unsqueeze(1);
}

// -infinity for the keys that a query does not see.
Tensor visible_scores(const Tensor& scores, bool causal, int64_t width, bool chunked) {
  if (!causal && width == 0) return scores;
  const Tensor key = key_positions(scores.size(-1), scores.device());
  const Tensor place = query_positions(scores.size(-2), scores.size(-1), scores.device());
  const auto window = static_cast<double>(width);
  Tensor seen = causal    ? key <= place
                : chunked ? floor_divide(key, window) <= floor_divide(place, window)
                          : key < place + window;
  if (chunked)
    seen = logical_and(seen, key >= floor_divide(place, window) * window);
  else if (width > 0)
    seen = logical_and(seen, key + window > place);
  return where(seen, scores, -std::numeric_limits<double>::infinity());
}

// Attention from matmul and softmax with the full score matrix: for gradients, and for types and
// sizes without a kernel.
Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSettings& s,
                double scale) {
  const int64_t batch = q.size(0), heads = q.size(1), queries = q.size(2), keys = k.size(2);
  const int64_t kv_heads = k.size(1), group = heads / kv_heads;
  const auto grouped = [&](const Tensor& x) {  // broadcasts to all heads that share it
    return x.unsqueeze(2).expand({batch, kv_heads, group, keys, x.size(-1)});
  };
  const Tensor by_group = q.reshape({batch, kv_heads, group, queries, q.size(3)});
  Tensor scores = matmul(by_group, grouped(k).transpose()) * scale;
  if (s.soft_cap > 0) scores = tanh(scores / s.soft_cap) * s.soft_cap;
  if (s.max_bias > 0) {
    const Tensor slopes =
        from_vector(bias_slopes(s.max_bias, heads), {kv_heads, group, 1, 1}, q.device());
    const Tensor key = key_positions(keys, q.device());
    const Tensor place = query_positions(queries, keys, q.device());
    scores = scores - cast(slopes * abs(cast(key - place, DType::f32)), scores.type());
  }
  if (s.mask) {
    const Tensor mask = cast(s.mask, scores.type());
    scores = scores + (mask.rank() == 2
                           ? mask
                           : mask.permute({1, 0, 2}).reshape({kv_heads, group, queries, keys}));
  }
  scores = visible_scores(scores, s.causal, s.window, s.chunked && s.window > 0);
  Tensor weights;
  if (s.sinks) {
    const Tensor sink = cast(s.sinks, scores.type())
                            .reshape({1, kv_heads, group, 1, 1})
                            .expand({batch, kv_heads, group, queries, 1});
    const Tensor both[] = {scores, sink};
    weights = softmax(concat(both, -1), -1).slice(-1, 0, keys);
  } else {
    weights = softmax(scores, -1);
  }
  return matmul(weights, grouped(v)).reshape({batch, heads, queries, v.size(3)});
}

// Why the gradient needs the scores; nullopt if it does not.
std::optional<std::string> why_composed(std::span<const Tensor> sides, const AttentionSettings& s) {
  if (s.mask) return "it has a mask";
  if (s.sinks) return "it has sinks";
  if (s.soft_cap != 0) return "it has a soft cap";
  if (s.max_bias != 0) return "it has linear biases";
  if (sides[1].elements() == 0) return "it has no keys";
  return AttentionOp::no_whole_gradient(sides[0].device(), sides);
}

// For gradients. Of long texts some queries at a time, whose scores are computed again, so that
// memory never holds all of them.
Tensor composed_in_parts(const Tensor& q, const Tensor& k, const Tensor& v,
                         const AttentionSettings& s, double scale, const std::string& why) {
  constexpr int64_t kQueries = 256;
  const int64_t queries = q.size(2), keys = k.size(2);
  const auto noted = [&](const Tensor& result, const std::string& from) {
    return use_op(std::make_shared<NotedOp>(
                      fmt::format("the gradient of attention over {} queries and {} keys is "
                                  "computed from {}: {}",
                                  queries, keys, from, why)),
                  {result});
  };
  // Places are counted from the last key, which all parts have unless they are causal.
  const bool by_place = s.window > 0 || s.max_bias > 0;
  if (queries < 2 * kQueries || s.mask || (by_place && !s.causal))
    return noted(composed(q, k, v, s, scale), "all scores, which are kept");
  std::vector<Tensor> parts;
  for (int64_t begin = 0; begin < queries; begin += kQueries) {
    const int64_t end = std::min(begin + kQueries, queries);
    const int64_t seen = s.causal ? keys - queries + end : keys;
    parts.push_back(recomputed([&] {
      return composed(q.slice(2, begin, end), k.slice(2, 0, seen), v.slice(2, 0, seen), s, scale);
    }));
  }
  return noted(concat(parts, 2),
               fmt::format("scores of {} queries at a time, made again", kQueries));
}

// whole: see AttentionOp.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& spans,
              int64_t most_queries, const AttentionSettings& s, bool whole) {
  auto op = std::make_shared<AttentionOp>();
  op->scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  op->whole = whole;
  op->keeps_sums = whole && AttentionOp::needs_sums(q.device());
  op->causal = s.causal;
  op->window = s.window;
  op->chunked = s.chunked && s.window > 0;
  op->soft_cap = s.soft_cap;
  op->max_bias = s.max_bias;
  op->value_dim = s.value_dim > 0 ? s.value_dim : v.size(-1);
  op->most_queries = most_queries;
  op->has_table = static_cast<bool>(s.table);
  op->has_mask = static_cast<bool>(s.mask);
  op->has_sinks = static_cast<bool>(s.sinks);
  // Values of the length of keys are read with the strides of keys.
  const bool alike = k.rank() == v.rank() &&
                     (op->value_dim < k.size(-1) || k.layout().strides == v.layout().strides);
  std::vector<Tensor> inputs = {q, alike ? k : k.contiguous(), alike ? v : v.contiguous(), spans};
  for (const Tensor* each : {&s.table, &s.mask, &s.sinks})
    if (*each) inputs.push_back(*each);
  return use_op(std::move(op), std::move(inputs));
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSettings& s) {
  if (!q || !k || !v) fail("attention: q, k or v is an empty Tensor");
  const auto fits = [&] {
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || v.size(3) > k.size(3)) return false;
    for (int axis = 0; axis < 3; ++axis)
      if (k.size(axis) != v.size(axis)) return false;
    return q.size(0) == k.size(0) && k.size(1) > 0 && q.size(1) % k.size(1) == 0 &&
           q.size(3) == k.size(3) && q.size(2) <= k.size(2);
  };
  if (!fits()) {
    fail(
        fmt::format("attention: q {}, k {}, v {}; q must be [batch, heads, queries, dim], k and v "
                    "[batch, kv_heads, keys, dim] with at least as many keys as queries, and v "
                    "with at most the dim of k",
                    q.shape().text(), k.shape().text(), v.shape().text()));
  }
  if (s.value_dim > 0 && s.value_dim < v.size(3)) {
    AttentionSettings rest = s;
    rest.value_dim = 0;
    return attention(q, k, v.slice(-1, 0, s.value_dim), rest);
  }
  const int64_t batch = q.size(0), queries = q.size(2), dim = q.size(3);
  const double scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(dim));
  const bool learns = q.requires_grad() || k.requires_grad() || v.requires_grad() ||
                      (s.mask && s.mask.requires_grad()) || (s.sinks && s.sinks.requires_grad());
  // Use the f32 kernels: the composition would round every score to bf16.
  if (!learns && is_type(q, DType::bf16))
    return cast(attention(cast(q, DType::f32), k, v, s), DType::bf16);
  const Tensor sides[] = {q, k, v};
  const std::optional<std::string> why = learns ? why_composed(sides, s) : std::nullopt;
  const bool whole = learns && !why;
  const bool floats = is_type(k, DType::f32) || is_type(k, DType::f16) || is_type(k, DType::bf16);
  const bool known = is_type(q, DType::f32) || is_type(q, DType::f16) || whole;
  const bool kernels = (!learns || whole) && known && floats && k.type() == v.type() &&
                       dim <= ops::kMaxHeadDim && k.elements() > 0 && q.elements() > 0 &&
                       v.elements() > 0;
  if (!kernels && learns)
    return composed_in_parts(q, k, v, s, scale, why.value_or("there are no elements"));
  if (!kernels) return composed(q, k, v, s, scale);
  std::vector<int32_t> spans;
  for (int64_t b = 0; b < batch; ++b)
    for (const int64_t word : {b * queries, queries, k.size(2), b})
      spans.push_back(static_cast<int32_t>(word));
  AttentionSettings settings = s;
  settings.scale = scale;
  if (s.mask && batch > 1) {  // repeat the mask for each sequence
    const std::vector<Tensor> each(static_cast<size_t>(batch), s.mask);
    settings.mask = concat(each, 0);
  }
  const Tensor rows = q.permute({0, 2, 1, 3}).reshape({batch * queries, q.size(1), dim});
  const Tensor result =
      attend(rows, k.permute({0, 2, 1, 3}), v.permute({0, 2, 1, 3}),
             from_vector(spans, {batch, 4}, q.device()), queries, settings, whole);
  return result.reshape({batch, queries, q.size(1), v.size(3)}).permute({0, 2, 1, 3});
}

Tensor cached_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& spans,
                        int64_t most_queries, const AttentionSettings& s) {
  if (!q || !k || !v || !spans) fail("cached_attention: q, k, v or spans is an empty Tensor");
  return attend(q, k, v, spans, most_queries, s, false);
}

Tensor AttentionOp::masked(const Tensor& scores) const {
  return visible_scores(scores, causal, window, chunked);
}

std::vector<Spec> AttentionOp::infer(std::span<const Tensor> inputs) const {
  const Tensor &q = inputs[0], &k = inputs[1], &v = inputs[2], &spans = inputs[3];
  const auto wrong = [&](const std::string& what) {
    fail(fmt::format("cached_attention: {}; q is {}{}, k {}{}, v {}{}, spans {}{}", what,
                     q.type().name(), q.shape().text(), k.type().name(), k.shape().text(),
                     v.type().name(), v.shape().text(), spans.type().name(), spans.shape().text()));
  };
  if (q.rank() != 3 || k.rank() != 4 || v.rank() != 4 || !(k.type() == v.type()))
    wrong("q must be [rows, heads, dim], k and v [slots, positions, kv_heads, dim] of one type");
  for (int axis = 0; axis < 3; ++axis)
    if (k.size(axis) != v.size(axis))
      wrong("k and v must have the same slots, positions and kv_heads");
  if (v.size(3) > k.size(3) || value_dim < 1 || value_dim > v.size(3))
    wrong(fmt::format("values of {} elements must not be longer than keys and v", value_dim));
  if (k.size(2) == 0 || q.size(1) % k.size(2) != 0 || q.size(2) != k.size(3))
    wrong("heads must be a multiple of kv_heads, and q and k must have the same dim");
  if (!is_type(q, DType::f32) && !is_type(q, DType::f16) && !keeps_sums)
    wrong("q must be f32 or f16");
  if (!(k.type() == ElementType(DType::f32)) && !is_type(k, DType::f16) &&
      !is_type(k, DType::bf16) && !(k.type() == ElementType(BlockType::q8_0)))
    wrong("k and v must be f32, f16, bf16 or q8_0");
  if (spans.rank() != 2 || spans.size(1) != 4 || !is_type(spans, DType::i32))
    wrong("spans must be i32 [sequences, 4]");
  if (most_queries < 1)
    wrong(fmt::format("most_queries is {} and must be at least 1", most_queries));
  size_t next = 4;
  const Tensor* table = has_table ? &inputs[next++] : nullptr;
  if (table && (table->rank() != 2 || !is_type(*table, DType::i32) ||
                !std::has_single_bit(static_cast<uint64_t>(k.size(1)))))
    wrong(
        fmt::format("the table is {} of {}; it must be i32 [texts, blocks], and the blocks of k "
                    "must have a power of two of positions",
                    table->shape().text(), table->type().name()));
  const Tensor* mask = has_mask ? &inputs[next++] : nullptr;
  const bool of_heads = mask && mask->rank() == 3 && mask->size(1) == q.size(1);
  if (mask && ((mask->rank() != 2 && !of_heads) || !is_type(*mask, DType::f32) ||
               mask->size(0) < q.size(0)))
    wrong(fmt::format("the mask is {} of {} and must be f32 [rows, keys] or [rows, heads, keys]",
                      mask->shape().text(), mask->type().name()));
  const Tensor* sinks = has_sinks ? &inputs[next] : nullptr;
  if (sinks && (sinks->elements() != q.size(1) || !is_type(*sinks, DType::f32)))
    wrong(fmt::format("sinks are {} of {} and must be f32 [heads]", sinks->shape().text(),
                      sinks->type().name()));
  if (rounded) {
    const uint64_t bytes = ops::rounded_bytes(1, static_cast<uint64_t>(q.size(1) * value_dim));
    return {{{q.size(0), static_cast<int64_t>(bytes / 4)}, DType::i32}};
  }
  std::vector<Spec> outputs = {
      {{q.size(0), q.size(1), value_dim}, narrow ? ElementType(DType::f16) : q.type()}};
  if (keeps_sums) outputs.push_back({{q.size(0), q.size(1)}, DType::f32});
  return outputs;
}

bool AttentionOp::takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const {
  const Layout& layout = tensor.layout();
  if (input > 2 || tensor.type().is_block()) return Op::takes_layout(input, tensor, device);
  if (layout.shape.rank() == 0 || (layout.stride(-1) != 1 && layout.shape[-1] != 1)) return false;
  const auto bytes = static_cast<int64_t>(tensor.type().block_bytes()), dim = layout.shape[-1];
  // Kernels use the widest loads that the head size allows.
  const int64_t unit = input > 0      ? ops::load_bytes(tensor.type(), static_cast<uint32_t>(dim))
                       : dim % 4 == 0 ? 4 * bytes
                                      : bytes;
  for (int axis = 0; axis + 1 < layout.shape.rank(); ++axis)
    if (layout.stride(axis) < 0 || (!device.is_cpu && layout.stride(axis) * bytes % unit != 0))
      return false;
  return device.is_cpu || layout.offset * bytes % static_cast<int64_t>(kRangeAlignment) == 0;
}

std::optional<std::string> AttentionOp::cannot_run(const DeviceInfo&,
                                                   std::span<const Tensor> inputs) const {
  if (inputs[0].size(2) > ops::kMaxHeadDim)
    return fmt::format("the attention kernels support head sizes up to {}", ops::kMaxHeadDim);
  return std::nullopt;
}

// Assumes that every query sees every key of its slot or table: the real number is device data.
double AttentionOp::operations(std::span<const DeviceView> inputs,
                               std::span<const DeviceView>) const {
  const double seen = causal && most_queries > 1 ? 0.5 : 1.0;
  const int64_t blocks = has_table ? inputs[4].layout.shape[1] : 1;
  return 4.0 * seen * static_cast<double>(inputs[0].elements()) *
         static_cast<double>(inputs[1].layout.shape[1] * blocks);
}

std::vector<float> bias_slopes(double max_bias, int64_t heads) {
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  for (int64_t h = 0; h < heads; ++h) {
    const double power =
        h < whole ? static_cast<double>(h + 1) : static_cast<double>(h - whole) + 0.5;
    slopes.push_back(static_cast<float>(std::exp2(-max_bias * power / static_cast<double>(whole))));
  }
  return slopes;
}

std::shared_ptr<const Op> AttentionOp::with_epilogue(const Chain& chain, size_t) const {
  if (narrow || rounded || keeps_sums || chain.key() != cast_chain(DType::f32, DType::f16).key())
    return nullptr;
  auto both = std::make_shared<AttentionOp>(*this);
  both->narrow = true;
  return both;
}

std::string AttentionOp::attributes() const {
  return fmt::format("scale {:.4g}{}{}{}{}{}{}{}", scale, causal ? ", causal" : "",
                     window ? fmt::format(", {} {}", chunked ? "chunks of" : "window", window) : "",
                     has_table ? ", paged" : "",
                     max_bias > 0 ? fmt::format(", biases up to {:g}", max_bias) : "",
                     soft_cap > 0 ? fmt::format(", soft cap {:g}", soft_cap) : "",
                     keeps_sums ? ", keeps sums" : "",
                     narrow    ? ", then f16"
                     : rounded ? ", rounded to 8 bits"
                               : "");
}

}  // namespace prism
