// cumsum: the op and its CPU kernel.
#include "prism/ops/scan.h"

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/rows.h"
#include "ops/rows/row_source.h"
#include "ops/rows/scan_kernel.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// Works along the last axis.
class CumsumOp : public Op {
 public:
  CumsumOp(RowSource source, bool reverse) : source_(std::move(source)), reverse_(reverse) {}

  std::string_view name() const override { return "cumsum"; }
  std::string attributes() const override { return reverse_ ? "reversed" : ""; }
  std::vector<Spec> infer(std::span<const Tensor>) const override {
    return {{source_.shape(), source_.stored()}};
  }
  std::vector<Tensor> gradient(const GradientCall& call) const override {
    return {cumsum(call.output_gradients[0], -1, !reverse_)};
  }
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor>) const override {
    return source_.cannot_run(device);
  }
  bool takes_layout(size_t, const Tensor& tensor, const DeviceInfo& device) const override {
    return source_.takes_layout(tensor, device);
  }
  std::shared_ptr<const Op> with_prologue(size_t, const Chain& chain) const override {
    auto source = source_.after(chain, 1, 1);
    if (!source) return nullptr;
    return std::make_shared<CumsumOp>(*std::move(source), reverse_);
  }

  void launch(DeviceCall& call) const override {
    const Rows& rows = source_.rows();
    if (call.output().elements() == 0) return;
    const RowBinding binding = bind_rows(call, source_);
    std::vector<DeviceView> buffers = binding.buffers;
    buffers.push_back(call.output());
    std::vector<ParamValue> params = {static_cast<uint32_t>(rows.length)};
    params.insert(params.end(), binding.params.begin(), binding.params.end());
    const DType stored = call.output().type.plain();
    const ops::ScanCut cut = ops::scan_cut(rows, binding, stored, call.info());
    call.launch(
        fmt::format("cumsum {} {} {} {}", reverse_, dtype_name(stored), cut.key(), binding.key()),
        [&] { return ops::cumsum_kernel(binding, stored, reverse_, cut); },
        {static_cast<uint32_t>(rows.outer), 1, 1}, buffers, std::move(params));
  }

  void run_cpu(const CpuCall& call) const override {
    with_register(source_.type(), [&](auto sample) { run<decltype(sample)>(call); });
  }

 private:
  template <class T>
  void run(const CpuCall& call) const {
    const Rows& rows = source_.rows();
    const HostView& output = call.outputs[0];
    const auto n = static_cast<size_t>(rows.length);
    if (output.layout.shape.elements() == 0) return;
    const auto bytes = static_cast<int64_t>(output.type.block_bytes());
    std::byte* const to = output.data + output.layout.offset * bytes;
    call.pool.parallel_for(static_cast<uint64_t>(rows.outer), rows_a_chunk(rows.length),
                           [&](uint64_t begin, uint64_t end) {
                             RowReader reader(source_, call);
                             std::vector<T> made(n);
                             for (auto row = static_cast<int64_t>(begin);
                                  row < static_cast<int64_t>(end); ++row) {
                               scan(reader.read<T>(row, 0, 0, rows.length), made.data(), n);
                               cpu::store(dtype_of<T>(), made.data(), output.type.plain(),
                                          to + row * rows.length * bytes, n);
                             }
                           });
  }

  template <class T>
  void scan(const T* x, T* out, size_t n) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (!reverse_) return cpu::row_cumsum(x, out, n);
      double sum = 0;
      for (size_t i = n; i-- > 0;) out[i] = static_cast<T>(sum += static_cast<double>(x[i]));
    } else {
      std::make_unsigned_t<T> sum = 0;  // wraps
      for (size_t k = 0; k < n; ++k) {
        const size_t i = reverse_ ? n - 1 - k : k;
        out[i] = static_cast<T>(sum += static_cast<std::make_unsigned_t<T>>(x[i]));
      }
    }
  }

  RowSource source_;
  bool reverse_;
};

}  // namespace

Tensor cumsum(const Tensor& input, int axis, bool reverse) {
  if (!input) fail("cumsum: an empty Tensor as an input");
  if (input.type().is_block())
    fail(fmt::format("cumsum: an input of type {}; dequantise() it first", input.type().name()));
  if (input.rank() == 0) return cumsum(input.reshape({1}), 0, reverse).reshape(Shape{});
  axis = checked_axis("cumsum", axis, input.rank());
  const DType type = input.type().plain();
  const bool narrow = type == DType::b1 || (!is_float(type) && register_type(type) == DType::i32);
  const Tensor x = narrow ? cast(input, DType::i32) : input;
  const bool last = axis == x.rank() - 1;
  const Tensor rows = last ? x : x.transpose(axis, -1);
  RowSource source(x.type().plain(), rows.shape(), x.rank() - 1, x.rank());
  const Tensor y = use_op(std::make_shared<CumsumOp>(std::move(source), reverse), {rows});
  return last ? y : y.transpose(axis, -1);
}

}  // namespace prism
