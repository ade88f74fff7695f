// Launches product kernels: their cache keys, and rounding of activations.
#include "ops/products/product_launch.h"

#include <fmt/format.h>

#include "ops/products/cache_tail.h"
#include "tensor/chain/chain_op.h"

namespace prism {

namespace {

std::string key_of(const ops::VectorProduct& p) {
  return fmt::format("vector_product {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                     p.weight.name(), dtype_name(p.x), dtype_name(p.y), p.x_rows, p.pair, p.rounded,
                     p.rounds, p.unscaled, p.scale_epsilon.value_or(-1.0f), p.experts, p.aligned,
                     p.subgroups, p.split, p.rows_each, p.units_ahead, p.at_once, p.x_first,
                     p.turns, p.k_tile, p.shuffles);
}

template <class Product>
void launch_with_tail(DeviceCall& call, std::string key, ir::Kernel (*make)(const Product&),
                      Product product, const ops::ProductLaunch& launch,
                      std::vector<DeviceView> buffers, const TailBinding& tail,
                      const DeviceView& output) {
  product.tail = tail.spec;
  if (tail.spec) key += " then " + tail.spec->key();
  buffers.insert(buffers.end(), tail.buffers.begin(), tail.buffers.end());
  buffers.push_back(output);
  std::vector<ParamValue> params = param_values(launch.params);
  params.insert(params.end(), tail.params.begin(), tail.params.end());
  call.launch(
      key, [&] { return make(product); }, launch.groups, buffers, std::move(params));
}

}  // namespace

void launch_product(DeviceCall& call, ops::VectorProduct p, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output) {
  std::string key = key_of(p);
  launch_with_tail(call, std::move(key), ops::vector_product, std::move(p), launch,
                   std::move(inputs), tail, output);
}

void launch_products(DeviceCall& call, std::vector<ops::VectorProduct> products,
                     const ops::ProductRows& x, const ops::ProductLaunch& launch,
                     std::vector<DeviceView> buffers, const std::vector<TailBinding>& tails,
                     std::span<const DeviceView> outputs, const ops::CacheRows* cache,
                     const std::vector<ParamValue>& cache_params) {
  std::string key = "side by side " + x.key();
  if (cache) key += " " + cache->key();
  std::vector<ParamValue> params = param_values(launch.params);
  for (size_t i = 0; i < products.size(); ++i) {
    products[i].tail = tails[i].spec;
    key += " " + key_of(products[i]);
    if (tails[i].spec) key += " then " + tails[i].spec->key();
    buffers.insert(buffers.end(), tails[i].buffers.begin(), tails[i].buffers.end());
    params.insert(params.end(), tails[i].params.begin(), tails[i].params.end());
  }
  buffers.insert(buffers.end(), outputs.begin(), outputs.end());
  params.insert(params.end(), cache_params.begin(), cache_params.end());
  call.launch(
      key, [&] { return ops::vector_products(products, x, cache); }, launch.groups, buffers,
      std::move(params));
}

void launch_product(DeviceCall& call, ops::FragmentProduct p, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output) {
  std::string key = fmt::format("fragment_product {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                                dtype_name(p.a), p.b.name(), dtype_name(p.c), dtype_name(p.operand),
                                p.a_transposed, p.b_transposed, p.experts, p.aligned, p.tile_m,
                                p.tile_n, p.tile_k, p.warps_m, p.warps_n, p.stages, p.run_ahead);
  launch_with_tail(call, std::move(key), ops::fragment_product, std::move(p), launch,
                   std::move(inputs), tail, output);
}

void launch_product(DeviceCall& call, ops::PackedProduct p, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output) {
  std::string key =
      fmt::format("packed_product {} {} {} {} {} {} {} {} {}", p.weight.name(), dtype_name(p.y),
                  p.aligned, p.tile_rows, p.tile_n, p.tile_k, p.warps_n, p.warps_k, p.stages);
  launch_with_tail(call, std::move(key), ops::packed_product, std::move(p), launch,
                   std::move(inputs), tail, output);
}

void launch_product(DeviceCall& call, ops::F32Product p, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output) {
  std::string key = fmt::format("f32_product {} {} {} {} {}", dtype_name(p.a), dtype_name(p.b),
                                p.a_transposed, p.b_transposed, dtype_name(p.c));
  launch_with_tail(call, std::move(key), ops::f32_product, std::move(p), launch, std::move(inputs),
                   tail, output);
}

DeviceView rounded_rows(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t k,
                        int64_t x_stride) {
  const uint64_t bytes = ops::rounded_bytes(static_cast<uint64_t>(rows), static_cast<uint64_t>(k));
  const DeviceView rounded = call.scratch({static_cast<int64_t>((bytes + 3) / 4)}, DType::i32);
  launch_round_rows(call, x, rows, k, x_stride, rounded);
  return rounded;
}

std::string round_rows_key(DType x) { return fmt::format("round_rows {}", dtype_name(x)); }

void launch_round_rows(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t k,
                       int64_t x_stride, const DeviceView& rounded) {
  const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
  const auto launch = ops::round_rows_launch(word(rows), word(k), word(x_stride));
  const DType type = x.type.plain();
  call.launch(
      round_rows_key(type), [&] { return ops::round_rows(type); }, launch.groups, {x, rounded},
      param_values(launch.params));
}

void launch_zeros(DeviceCall& call, const DeviceView& y) {
  Chain zero;
  zero.add_constant(0, DType::f32);
  zero.output = y.type.plain();
  launch_chain(call, zero, {}, y);
}

}  // namespace prism
