// sort, argsort and top_k: one op that gives the first elements of each sorted row.
#include "prism/ops/sort.h"

#include <limits>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/select_sort.h"
#include "ops/rows/row_source.h"
#include "ops/rows/sort_kernels.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "tensor/chain/chain_kernel.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// Sorts along the last axis. Outputs: values, indices.
class SortOp : public Op {
 public:
  SortOp(RowSource source, int64_t kept, bool descending)
      : source_(std::move(source)), kept_(kept), descending_(descending) {}

  std::string_view name() const override { return is_whole() ? "sort" : "top_k"; }
  std::string attributes() const override {
    return fmt::format("{} {}", kept_, descending_ ? "largest first" : "smallest first");
  }
  std::vector<Spec> infer(std::span<const Tensor>) const override {
    Shape shape = source_.shape();
    shape[-1] = kept_;
    return {{shape, source_.stored()}, {shape, DType::i32}};
  }
  std::vector<Tensor> gradient(const GradientCall& call) const override {
    if (!call.output_gradients[0]) return {Tensor()};
    const Tensor &g = call.output_gradients[0], &places = call.outputs[1];
    // A whole sort has an inverse permutation; a gather by it is cheaper than put_along's search.
    if (is_whole()) return {take_along(g, argsort(places), -1)};
    return {put_along(g, places, -1, source_.rows().length)};
  }
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor>) const override {
    const DType stored = source_.stored();
    std::string reason = lacks_type(device.capabilities, stored);
    if (reason.empty() && stored == DType::f64)  // keys of 64 bits
      reason = lacks_type(device.capabilities, DType::i64);
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

  void launch(DeviceCall& call) const override {
    const Rows& rows = source_.rows();
    launch_sort(call, call.input(0), rows.outer, rows.length, kept_, descending_, call.output(0),
                call.output(1));
  }

  void run_cpu(const CpuCall& call) const override {
    with_register(source_.type(), [&](auto sample) { run<decltype(sample)>(call); });
  }

 private:
  bool is_whole() const { return kept_ == source_.rows().length; }

  template <class T>
  void run(const CpuCall& call) const {
    const Rows& rows = source_.rows();
    const HostView& output = call.outputs[0];
    if (rows.outer == 0 || kept_ == 0) return;
    const auto n = static_cast<size_t>(rows.length), kept = static_cast<size_t>(kept_);
    const auto bytes = static_cast<int64_t>(output.type.block_bytes());
    std::byte* const to = output.data + output.layout.offset * bytes;
    int32_t* const places = call.outputs[1].first<int32_t>();
    call.pool.parallel_for(static_cast<uint64_t>(rows.outer), rows_a_chunk(rows.length),
                           [&](uint64_t begin, uint64_t end) {
                             RowReader reader(source_, call);
                             std::vector<T> made(kept);
                             for (auto row = static_cast<int64_t>(begin);
                                  row < static_cast<int64_t>(end); ++row) {
                               const T* x = reader.read<T>(row, 0, 0, rows.length);
                               int32_t* const indices = places + row * kept_;
                               if (is_whole())
                                 cpu::sort(x, n, descending_, made.data(), indices);
                               else
                                 cpu::top_k(x, n, kept, descending_, made.data(), indices);
                               cpu::store(dtype_of<T>(), made.data(), output.type.plain(),
                                          to + row * kept_ * bytes, kept);
                             }
                           });
  }

  RowSource source_;
  int64_t kept_;
  bool descending_;
};

Ordered ordered(const char* op, const Tensor& x, int64_t kept, int axis, bool descending) {
  if (x.type().plain() == DType::b1) {
    const Ordered result = ordered(op, cast(x, DType::u8), kept, axis, descending);
    return {cast(result.values, DType::b1), result.indices};
  }
  const bool last = axis == x.rank() - 1;
  const Tensor rows = last ? x : x.transpose(axis, -1);
  if (rows.shape()[-1] > std::numeric_limits<int32_t>::max())
    fail(fmt::format("{}: {} has more elements along axis {} than i32 counts", op, x.shape().text(),
                     axis));
  RowSource source(x.type().plain(), rows.shape(), x.rank() - 1, x.rank());
  const std::vector<Tensor> both =
      use_op_all(std::make_shared<SortOp>(std::move(source), kept, descending), {rows});
  if (last) return {both[0], both[1]};
  return {both[0].transpose(axis, -1), both[1].transpose(axis, -1)};
}

int axis_of(const char* op, const Tensor& x, int axis) {
  if (!x) fail(fmt::format("{}: an empty Tensor as an input", op));
  if (x.type().is_block())
    fail(fmt::format("{}: an input of type {}; dequantise() it first", op, x.type().name()));
  return checked_axis(op, axis, x.rank());
}

}  // namespace

Ordered sort(const Tensor& x, int axis, bool descending) {
  axis = axis_of("sort", x, axis);
  return ordered("sort", x, x.shape()[axis], axis, descending);
}

Tensor argsort(const Tensor& x, int axis, bool descending) {
  return sort(x, axis, descending).indices;
}

Ordered top_k(const Tensor& x, int64_t k, int axis, bool largest) {
  axis = axis_of("top_k", x, axis);
  if (k < 0 || k > x.shape()[axis])
    fail(fmt::format("top_k: {} elements of {} along axis {}, which has {}", k, x.shape().text(),
                     axis, x.shape()[axis]));
  return ordered("top_k", x, k, axis, largest);
}

}  // namespace prism
