// Rounds rows once for several products.
#include "ops/products/round_rows_op.h"

#include <vector>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/products/quantised_activations.h"
#include "ops/products/matmul_op.h"
#include "ops/products/product_launch.h"
#include "prism/error.h"

namespace prism {

namespace {

// Elements from a row to the next, where rows lie evenly and their elements side by side.
std::optional<int64_t> row_step(const Layout& layout) {
  if (layout.is_dense()) return layout.shape[-1];
  const auto matrix = layout.shape.rank() == 2 ? matrix_layout(layout) : std::nullopt;
  if (!matrix || matrix->transposed) return std::nullopt;
  return matrix->step;
}

int64_t rows_of(const Shape& shape) { return shape.elements() / std::max<int64_t>(1, shape[-1]); }

}  // namespace

// Products may share what they need: those with groups of one length on the CPU, all elsewhere.
std::string RoundRowsOp::attributes() const {
  return fmt::format("by {}", cpu_ ? cpu::activation_group(type_) : 32);
}

std::vector<Spec> RoundRowsOp::infer(std::span<const Tensor> inputs) const {
  const Shape& shape = inputs[0].shape();
  const auto k = static_cast<uint64_t>(shape[-1]);
  const uint64_t bytes =
      cpu_ ? cpu::ActivationsView::row_bytes(type_, k) : ops::rounded_bytes(1, k) / 4;
  return {{{rows_of(shape), static_cast<int64_t>(bytes)}, cpu_ ? DType::u8 : DType::i32}};
}

bool RoundRowsOp::takes_layout(size_t, const Tensor& tensor, const DeviceInfo& device) const {
  const Layout& layout = tensor.layout();
  if (!device.is_cpu && layout.offset * tensor.type().block_bytes() % kRangeAlignment != 0)
    return false;
  return row_step(layout).has_value();
}

void RoundRowsOp::run_cpu(const CpuCall& call) const {
  const HostView& x = call.inputs[0];
  const int64_t rows = rows_of(x.layout.shape), k = x.layout.shape[-1];
  if (rows == 0 || k == 0) return;
  int64_t step = row_step(x.layout).value();
  const float* from = x.first<float>();
  std::vector<float> wide;
  if (x.type != ElementType(DType::f32)) {
    wide.resize(static_cast<size_t>(rows * k));
    const auto bytes = static_cast<int64_t>(x.type.block_bytes());
    for (int64_t row = 0; row < rows; ++row)
      cpu::load(x.type.plain(), x.data + (x.layout.offset + row * step) * bytes, 1, DType::f32,
                wide.data() + row * k, static_cast<size_t>(k));
    from = wide.data();
    step = k;
  }
  const auto view = cpu::ActivationsView::in(call.outputs[0].first<std::byte>(), type_,
                                             static_cast<uint64_t>(rows), static_cast<uint64_t>(k));
  cpu::quantise_activations(call.pool, from, static_cast<uint64_t>(step), view);
}

void RoundRowsOp::launch(DeviceCall& call) const {
  const DeviceView& x = call.input(0);
  const int64_t rows = rows_of(x.layout.shape), k = x.layout.shape[-1];
  if (rows == 0 || k == 0) return;
  launch_round_rows(call, x, rows, k, row_step(x.layout).value(), call.output());
}

bool RoundRowsOp::runs_on(const Device& device, const Tensor& x) {
  if (x.type().is_block() || !is_float(x.type().plain())) return false;
  const DType type = x.type().plain();
  if (device.info().is_cpu) return type != DType::f64 && row_step(x.layout());
  if (type != DType::f32 && type != DType::f16) return false;
  try {
    device.compile(cached_kernel(round_rows_key(type), [&] { return ops::round_rows(type); }));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotSupported) return false;
    throw;
  }
  return true;
}

}  // namespace prism
