// Keys of product kernels, and the launch that rounds activations.
#include "ops/product_launch.h"

#include <fmt/format.h>

#include "tensor/chain_op.h"

namespace prism {

void launch_product(DeviceCall& call, const ops::VectorProduct& p, const ops::ProductLaunch& launch,
                    std::span<const DeviceView> buffers) {
  const std::string key =
      fmt::format("vector_product {} {} {} {} {} {} {} {} {} {} {} {} {}", p.weight.name(),
                  dtype_name(p.x), dtype_name(p.y), p.x_rows, p.rounded, p.experts, p.aligned,
                  p.subgroups, p.split, p.rows_each, p.units_ahead, p.k_tile, p.shuffles);
  call.launch(
      key, [&] { return ops::vector_product(p); }, launch.groups, buffers,
      param_values(launch.params));
}

void launch_product(DeviceCall& call, const ops::FragmentProduct& p,
                    const ops::ProductLaunch& launch, std::span<const DeviceView> buffers) {
  const std::string key = fmt::format(
      "fragment_product {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", dtype_name(p.a), p.b.name(),
      dtype_name(p.c), dtype_name(p.operand), p.a_transposed, p.b_transposed, p.experts, p.aligned,
      p.tile_m, p.tile_n, p.tile_k, p.warps_m, p.warps_n, p.stages, p.run_ahead);
  call.launch(
      key, [&] { return ops::fragment_product(p); }, launch.groups, buffers,
      param_values(launch.params));
}

DeviceView rounded_rows(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t k,
                        int64_t x_stride) {
  const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
  const uint64_t bytes = ops::rounded_bytes(static_cast<uint64_t>(rows), static_cast<uint64_t>(k));
  const DeviceView rounded = call.scratch({static_cast<int64_t>((bytes + 3) / 4)}, DType::i32);
  const auto launch = ops::round_rows_launch(word(rows), word(k), word(x_stride));
  const DType type = x.type.plain();
  call.launch(
      fmt::format("round_rows {}", dtype_name(type)), [&] { return ops::round_rows(type); },
      launch.groups, {x, rounded}, param_values(launch.params));
  return rounded;
}

void launch_zeros(DeviceCall& call, const DeviceView& y) {
  Chain zero;
  zero.add_constant(0, DType::f32);
  zero.output = y.type.plain();
  launch_chain(call, zero, {}, y);
}

}  // namespace prism
