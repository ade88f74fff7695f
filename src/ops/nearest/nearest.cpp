// nearest_rows: the rows of a matrix that are nearest to queries.
#include "prism/ops/nearest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cpu/nearest/nearest.h"
#include "ops/nearest/nearest_kernels.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "nearest_rows: " + message);
}

// Inputs: queries [queries, width], matrix [rows, width], then factors (norms for cosine, scales
// for others), the bitmap and the spans, where they are given. Outputs: scores, indices.
class NearestRowsOp : public Op {
 public:
  NearestRowsOp(Metric metric, int64_t k, DType query_type, bool has_factors, bool has_allowed,
                bool has_spans, int64_t longest_span)
      : metric_(metric),
        k_(k),
        query_type_(query_type),
        has_factors_(has_factors),
        has_allowed_(has_allowed),
        has_spans_(has_spans),
        longest_span_(longest_span) {}

  std::string_view name() const override { return "nearest_rows"; }
  std::string attributes() const override {
    const std::string spans =
        has_spans_ ? fmt::format(", ranges of {} rows", longest_span_) : std::string();
    return fmt::format("{}, {} best{}", metric_name(metric_), k_, spans);
  }
  bool has_gradient() const override { return false; }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Shape shape = {inputs[0].shape()[0], k_};
    return {{shape, DType::f32}, {shape, DType::i32}};
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override {
    // PoCL, which has no subgroups, takes half a minute to compile the scan.
    if (device.capabilities.subgroup_size == 0) return "it has no subgroups";
    const std::string reason = lacks_type(device.capabilities, inputs[1].type().plain());
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &queries = call.inputs[0], &matrix = call.inputs[1];
    cpu::NearestRows rows;
    rows.metric = metric_;
    rows.type = matrix.type.plain();
    rows.data =
        matrix.data + matrix.layout.offset * static_cast<int64_t>(matrix.type.block_bytes());
    rows.count = static_cast<uint64_t>(matrix.layout.shape[0]);
    rows.width = static_cast<uint64_t>(matrix.layout.shape[1]);
    if (has_factors_)
      (metric_ == Metric::cosine ? rows.norms : rows.scales) = call.inputs[2].first<float>();
    if (has_allowed_) rows.allowed = call.inputs[allowed_input()].first<uint32_t>();
    const std::byte* const first =
        queries.data + queries.layout.offset * static_cast<int64_t>(queries.type.block_bytes());
    const auto count = static_cast<uint64_t>(queries.layout.shape[0]);
    const auto k = static_cast<uint64_t>(k_);
    const std::vector<cpu::NearRow> best =
        has_spans_ ? cpu::nearest_in(call.pool, rows, first, count, k,
                                     ranges(call.inputs[spans_input()], rows.count, count))
                   : cpu::nearest(call.pool, rows, first, count, k);
    const float none =
        std::numeric_limits<float>::infinity() * (is_distance(metric_) ? 1.0f : -1.0f);
    for (size_t i = 0; i < best.size(); ++i) {
      call.outputs[0].first<float>()[i] = best[i].is_row() ? best[i].score : none;
      call.outputs[1].first<int32_t>()[i] =
          best[i].is_row() ? static_cast<int32_t>(best[i].row) : -1;
    }
  }

  void launch(DeviceCall& call) const override {
    if (call.output().elements() == 0) return;
    ops::NearestLaunch launch{metric_, k_, query_type_,   call.input(0),  call.input(1), {},
                              {},      {}, longest_span_, call.output(0), call.output(1)};
    if (has_factors_) launch.factors = call.input(2);
    if (has_allowed_) launch.allowed = call.input(allowed_input());
    if (has_spans_) launch.spans = call.input(spans_input());
    launch.emit(call);
  }

 private:
  size_t allowed_input() const { return has_factors_ ? 3 : 2; }
  size_t spans_input() const { return allowed_input() + (has_allowed_ ? 1 : 0); }

  static std::vector<cpu::RowRange> ranges(const HostView& spans, uint64_t rows, uint64_t queries) {
    std::vector<cpu::RowRange> all;
    const auto* const values = spans.first<uint32_t>();
    for (uint64_t q = 0; q < queries; q += kSpanQueries) {
      const uint64_t block = q / kSpanQueries;
      cpu::RowRange& range = all.emplace_back();
      range.end = std::min<uint64_t>(rows, values[2 * block + 1]);
      range.begin = std::min<uint64_t>(range.end, values[2 * block]);
      for (uint64_t i = q; i < std::min(queries, q + kSpanQueries); ++i)
        range.queries.push_back(static_cast<uint32_t>(i));
    }
    std::erase_if(all, [](const cpu::RowRange& each) { return each.begin == each.end; });
    return all;
  }

  Metric metric_;
  int64_t k_;
  DType query_type_;
  bool has_factors_, has_allowed_, has_spans_;
  int64_t longest_span_;
};

void check_types(Metric metric, const Tensor& query, const Tensor& matrix) {
  if (!query || !matrix) fail("an empty Tensor as an input");
  const auto is_one_of = [](ElementType type, std::initializer_list<DType> types) {
    return !type.is_block() && std::ranges::find(types, type.plain()) != types.end();
  };
  if (metric == Metric::hamming) {
    if (!is_one_of(query.type(), {DType::u8}) || !is_one_of(matrix.type(), {DType::u8}))
      fail(fmt::format("hamming compares bits in u8; the query is {}, the matrix {}",
                       query.type().name(), matrix.type().name()));
    return;
  }
  if (!is_one_of(query.type(), {DType::f32, DType::f16, DType::bf16}))
    fail(fmt::format("a query of type {}; it must be f32, f16 or bf16", query.type().name()));
  if (!is_one_of(matrix.type(), {DType::f32, DType::f16, DType::bf16, DType::i8}))
    fail(fmt::format("a matrix of type {}; it must be f32, f16, bf16 or i8; cast() it first",
                     matrix.type().name()));
}

void check_shapes(const Tensor& query, const Tensor& matrix, int64_t k) {
  if (matrix.rank() != 2)
    fail("the matrix has the shape " + matrix.shape().text() + "; it must be [rows, width]");
  if ((query.rank() != 1 && query.rank() != 2) || query.shape()[-1] != matrix.shape()[1])
    fail(fmt::format("the query has the shape {}, the matrix {}; their last axes must be equal",
                     query.shape().text(), matrix.shape().text()));
  if (k < 0 || k > kMaximumNearest)
    fail(fmt::format("k is {}; it must be 0 to {}", k, kMaximumNearest));
  if (matrix.shape()[0] > std::numeric_limits<int32_t>::max())
    fail(fmt::format("{} rows, more than i32 counts", matrix.shape()[0]));
}

void check_input(const char* name, const Tensor& input, DType type, int64_t elements) {
  if (!input) return;
  if (input.rank() != 1 || input.size() != elements || input.type() != ElementType(type))
    fail(fmt::format("{} are {} {}; they must be {} [{}]", name, input.type().name(),
                     input.shape().text(), dtype_name(type), elements));
}

}  // namespace

Nearest nearest_rows(Metric metric, const Tensor& query, const Tensor& matrix, int64_t k,
                     const NearestInputs& given) {
  check_types(metric, query, matrix);
  check_shapes(query, matrix, k);
  const int64_t rows = matrix.shape()[0];
  check_input("norms", given.norms, DType::f32, rows);
  check_input("scales", given.scales, DType::f32, rows);
  check_input("allowed", given.allowed, DType::i32, (rows + 31) / 32);
  Tensor factors = metric == Metric::cosine    ? given.norms
                   : metric == Metric::hamming ? Tensor()
                                               : given.scales;
  const int64_t blocks =
      ((query.rank() == 1 ? 1 : query.shape()[0]) + kSpanQueries - 1) / kSpanQueries;
  if (given.spans && (given.spans.shape() != Shape{blocks, 2} ||
                      given.spans.type() != ElementType(DType::i32) || given.longest_span < 0))
    fail(fmt::format("spans are {} {}; they must be i32 [{}, 2]", given.spans.type().name(),
                     given.spans.shape().text(), blocks));
  const bool is_cpu = matrix.device().info().is_cpu;
  // The CPU computes lengths while a tile is in its cache; kernels read them.
  if (metric == Metric::cosine && !factors && !is_cpu) factors = row_norms(matrix);
  const bool one = query.rank() == 1;
  Tensor queries = one ? query.reshape({1, query.size()}) : query;
  if (metric != Metric::hamming) queries = cast(queries, DType::f32);
  std::vector<Tensor> inputs = {queries, matrix};
  if (factors) inputs.push_back(factors);
  if (given.allowed) inputs.push_back(given.allowed);
  if (given.spans) inputs.push_back(given.spans);
  const std::vector<Tensor> both = use_op_all(
      std::make_shared<NearestRowsOp>(metric, k, query.type().plain(), static_cast<bool>(factors),
                                      static_cast<bool>(given.allowed),
                                      static_cast<bool>(given.spans), given.longest_span),
      std::move(inputs));
  if (!one) return {both[0], both[1]};
  return {both[0].reshape({k}), both[1].reshape({k})};
}

Nearest cosine_top_k(const Tensor& query, const Tensor& matrix, int64_t k) {
  return nearest_rows(Metric::cosine, query, matrix, k);
}
Nearest cosine_top_k(const Tensor& query, const Tensor& matrix, const Tensor& norms, int64_t k) {
  return nearest_rows(Metric::cosine, query, matrix, k, {.norms = norms});
}
Nearest dot_top_k(const Tensor& query, const Tensor& matrix, int64_t k) {
  return nearest_rows(Metric::dot, query, matrix, k);
}
Nearest l2_top_k(const Tensor& query, const Tensor& matrix, int64_t k) {
  return nearest_rows(Metric::l2, query, matrix, k);
}
Nearest hamming_top_k(const Tensor& query, const Tensor& matrix, int64_t k) {
  return nearest_rows(Metric::hamming, query, matrix, k);
}

Tensor row_norms(const Tensor& matrix) { return sqrt(sum(square(cast(matrix, DType::f32)), {-1})); }

}  // namespace prism
