// indexer_scores: products of an indexer's queries with its paged keys.
#include "ops/attention/indexer.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "ops/attention/attention_parts.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

constexpr uint32_t kLanes = 64;

bool is_type(const Tensor& x, DType type) { return x.type() == ElementType(type); }

// One lane for each key of a row. Grid: (keys / kLanes, rows).
ir::Kernel scores_kernel(DType stored, bool weighted, uint32_t dim, uint32_t block) {
  return kernel("indexer_scores", kLanes, [&] {
    const In q = in("q", f32), keys = in("keys", kernel_type(stored)), spans = in("spans", u32),
             table = in("table", u32);
    std::optional<In> weights;
    if (weighted) weights = in("weights", f32);
    const Array scores = out("scores", f32);
    const Value heads = param("heads", u32), sequences = param("sequences", u32),
                entries = param("entries", u32), positions = param("positions", u32);
    const Value row = group_id(1), key = group_id(0) * kLanes + local_id();
    // The text of the row, and how many keys it sees; 0 if it belongs to none.
    Var slot(u32, 0u, "slot"), seen(u32, 0u, "seen");
    for_(sequences, [&](Value s) {
      const ops::Span span(spans, s);
      if_(row >= span.first_row && row < span.first_row + span.queries, [&] {
        slot = span.slot;
        seen = span.position(row - span.first_row) + 1u;
      });
    });
    const Value sees = key < seen && key < positions;
    const Value number = table.load_if(sees, slot * entries + key / block);
    const Value start = (number * block + key % block) * dim;
    Var sum(f32, 0.0f, "sum");
    const Value hidden = constant(f32, -std::numeric_limits<float>::infinity());
    for_(heads, [&](Value head) {
      Var product(f32, 0.0f, "product");
      if_(sees, [&] {
        for_(dim, [&](Value d) {
          product = fma(q[(row * heads + head) * dim + d], load_element(keys, start + d, stored),
                        product);
        });
      });
      if (weighted)
        sum = fma((*weights)[row * heads + head], max(product, 0.0f), sum);
      else
        scores.store_if(key < positions, (row * heads + head) * positions + key,
                        select(sees, product, hidden));
    });
    if (weighted)
      scores.store_if(key < positions, row * positions + key, select(sees, sum, hidden));
  });
}

class IndexerScoresOp : public Op {
 public:
  explicit IndexerScoresOp(bool weighted) : weighted_(weighted) {}
  std::string_view name() const override { return "indexer_scores"; }
  bool has_gradient() const override { return false; }
  std::string attributes() const override { return weighted_ ? "weighted heads" : ""; }

  // Inputs: q, keys, spans, table, head weights.
  std::vector<Spec> infer(std::span<const Tensor> in) const override {
    const Tensor &q = in[0], &keys = in[1], &spans = in[2], &table = in[3];
    const bool fits =
        q.rank() == 3 && is_type(q, DType::f32) && keys.rank() == 4 && keys.size(2) == 1 &&
        keys.size(3) == q.size(2) &&
        (is_type(keys, DType::f32) || is_type(keys, DType::f16) || is_type(keys, DType::bf16)) &&
        spans.rank() == 2 && spans.size(1) == 4 && is_type(spans, DType::i32) &&
        table.rank() == 2 && is_type(table, DType::i32) &&
        (!weighted_ ||
         (is_type(in[4], DType::f32) && in[4].shape() == Shape({q.size(0), q.size(1)})));
    if (!fits)
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("indexer_scores: q {} {}, keys {} {}, spans {}, table {}; q must be f32 "
                      "[rows, heads, dim], keys floats [blocks, block, 1, dim], spans i32 "
                      "[sequences, 4], the table i32 [texts, entries], head weights f32 [rows, "
                      "heads]",
                      q.type().name(), q.shape().text(), keys.type().name(), keys.shape().text(),
                      spans.shape().text(), table.shape().text()));
    const int64_t positions = table.size(1) * keys.size(1);
    return {{weighted_ ? Shape({q.size(0), positions}) : Shape({q.size(0), q.size(1), positions}),
             DType::f32}};
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &q = call.inputs[0], &keys = call.inputs[1], &spans = call.inputs[2],
                   &table = call.inputs[3], &out = call.outputs[0];
    const Shape &shape = q.layout.shape, &cache = keys.layout.shape;
    const int64_t heads = shape[1], dim = shape[2], block = cache[1];
    const int64_t entries = table.layout.shape[1], positions = entries * block;
    const auto* const words = spans.first<int32_t>();
    const auto* const blocks = table.first<int32_t>();
    const float* const weights = weighted_ ? call.inputs[4].first<float>() : nullptr;
    const int64_t of_row = (weighted_ ? 1 : heads) * positions;
    float* const to = out.first<float>();
    std::fill_n(to, shape[0] * of_row, -std::numeric_limits<float>::infinity());
    struct Row {
      int64_t row, seen, text;
    };
    std::vector<Row> rows;
    for (int64_t s = 0; s < spans.layout.shape[0]; ++s) {
      const int32_t* w = words + 4 * s;
      if (w[0] < 0 || w[1] < 0 || w[0] + w[1] > shape[0] || w[1] > w[2] || w[2] > positions ||
          w[3] < 0 || w[3] >= table.layout.shape[0])
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("indexer_scores: span {} is row {}, {} queries, {} keys, text {}; "
                        "there are {} rows and {} texts of {} positions",
                        s, w[0], w[1], w[2], w[3], shape[0], table.layout.shape[0], positions));
      for (int64_t i = 0; i < w[1]; ++i) rows.push_back({w[0] + i, w[2] - w[1] + i + 1, w[3]});
    }
    call.pool.parallel_for(rows.size(), 1, [&](uint64_t first, uint64_t last) {
      std::vector<float> wide(static_cast<size_t>(dim));
      for (uint64_t r = first; r < last; ++r) {
        const Row& row = rows[r];
        const float* const queries = q.first<float>() + row.row * heads * dim;
        for (int64_t key = 0; key < row.seen; ++key) {
          const int32_t number = blocks[row.text * entries + key / block];
          if (number < 0 || number >= cache[0])
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("indexer_scores: block {} of text {} is number {} of {} blocks",
                                    key / block, row.text, number, cache[0]));
          const auto at = static_cast<size_t>((number * block + key % block) * dim);
          cpu::load(keys.type.plain(), keys.data + at * keys.type.block_bytes(), 1, DType::f32,
                    wide.data(), static_cast<size_t>(dim));
          float sum = 0;
          for (int64_t head = 0; head < heads; ++head) {
            float product = 0;
            for (int64_t d = 0; d < dim; ++d)
              product += queries[head * dim + d] * wide[static_cast<size_t>(d)];
            if (weights)
              sum += weights[row.row * heads + head] * std::max(product, 0.0f);
            else
              to[row.row * of_row + head * positions + key] = product;
          }
          if (weights) to[row.row * of_row + key] = sum;
        }
      }
    });
  }

  void launch(DeviceCall& call) const override {
    const DeviceView &q = call.input(0), &keys = call.input(1), &table = call.input(3);
    const Shape& shape = q.layout.shape;
    const int64_t block = keys.layout.shape[1], entries = table.layout.shape[1];
    const DType stored = keys.type.plain();
    const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
    std::vector<DeviceView> buffers = {q, keys, call.input(2), table};
    if (weighted_) buffers.push_back(call.input(4));
    buffers.push_back(call.output());
    call.launch(
        fmt::format("indexer_scores {} {} {} {}", dtype_name(stored), weighted_, shape[2], block),
        [&] { return scores_kernel(stored, weighted_, word(shape[2]), word(block)); },
        {groups_for(entries * block, kLanes), word(shape[0]), 1}, buffers,
        {word(shape[1]), word(call.input(2).layout.shape[0]), word(entries),
         word(entries * block)});
  }

 private:
  bool weighted_;
};

}  // namespace

Tensor indexer_scores(const Tensor& q, const Tensor& head_weights, const Tensor& keys,
                      const Tensor& spans, const Tensor& table) {
  for (const Tensor* each : {&q, &keys, &spans, &table})
    if (!*each)
      throw Error(ErrorCode::kInvalidArgument, "indexer_scores: an operand is an empty Tensor");
  std::vector<Tensor> inputs = {q, keys, spans, table};
  if (head_weights) inputs.push_back(head_weights);
  return use_op(std::make_shared<IndexerScoresOp>(static_cast<bool>(head_weights)),
                std::move(inputs));
}

}  // namespace prism
