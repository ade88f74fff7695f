// Chooses the tiling of few-row products for a device, and their launch sizes.
#include <algorithm>

#include <fmt/format.h>

#include "ops/products/activation_tile.h"
#include "ops/products/product_kernels.h"
#include "ops/products/weight_units.h"
#include "prism/error.h"

namespace prism::ops {

namespace {

uint32_t units_of_row(const VectorProduct& p, uint32_t k) {
  const uint32_t elements = WeightReader::unit_elements(p.weight);
  return k / elements + (k % elements != 0 ? 1 : 0);
}

// Whether the lanes that share a row have all of it at once.
bool covers_rows(const VectorProduct& p, uint32_t k) {
  return units_of_row(p, k) <= uint64_t{VectorProduct::kWarp} * p.split * p.units_ahead;
}

ProductLaunch launch_of(const VectorProduct& p, uint32_t n, uint32_t k,
                        std::initializer_list<uint32_t> shape) {
  if (p.at_once && !covers_rows(p, k))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a product of {} weights cut to read rows at once: rows of {} elements "
                            "are longer; cut it for them",
                            p.weight.name(), k));
  const uint32_t each = p.rows_of_group();
  ProductLaunch launch;
  launch.groups = {(n + each - 1) / each, 1, 1};
  launch.params = {n, k};
  launch.params.insert(launch.params.end(), shape);
  const auto layout = WeightParams::for_launch(p.weight, k);
  launch.params.insert(launch.params.end(), layout.begin(), layout.end());
  return launch;
}

// One row of x by rows of block weights that as many lanes read at once as they have units: no loop
// and no registers for what it would read next, so more groups are there at a time. On an H200 q4_k
// of 4096x11008 is read at 77% of the bandwidth for 68, of 11008x4096 at 75 for 67; through OpenCL,
// whose launches do not overlap, at 59 for 51.
bool read_rows_at_once(VectorProduct& p, uint32_t n, uint32_t k, const ir::Capabilities& device,
                       uint64_t wanted) {
  constexpr uint32_t kRows = 4, kUsual = 4;
  const bool overlaps = device.dependent_launch;
  const uint32_t most = std::min(device.max_group_size / VectorProduct::kWarp, 16u);
  const uint32_t units = units_of_row(p, k), most_ahead = overlaps ? 1 : 2;
  for (uint32_t ahead = 1; ahead <= most_ahead; ++ahead) {
    const uint32_t lanes = VectorProduct::kWarp * ahead;
    const uint32_t split = std::max(1u, (units + lanes - 1) / lanes);
    if (split > most) continue;
    p.at_once = true;
    p.x_first = !overlaps;
    p.split = split;
    p.subgroups = split * std::max(1u, std::min(most, kUsual) / split);
    p.units_ahead = ahead;
    p.rows_each = kRows / ahead / (p.pair ? 2 : 1);
    while (p.rows_each > 1 && uint64_t{n} / p.rows_each * split < wanted) p.rows_each /= 2;
    return true;
  }
  return false;
}

}  // namespace

ProductLaunch vector_product_launch(const VectorProduct& p, uint32_t n, uint32_t k, uint32_t rows,
                                    uint32_t x_stride, uint32_t y_stride) {
  ProductLaunch launch = launch_of(p, n, k, {rows, x_stride, y_stride});
  if (rows == 0) launch.groups[0] = 0;
  return launch;
}

uint32_t ProductRows::buffer_count() const {
  return buffers.empty() ? 1 : *std::ranges::max_element(buffers) + 1;
}

uint32_t ProductRows::params(size_t products) const {
  const uint32_t each = 1 + (own_k ? 2 : 0) + (own_starts ? 1 : 0);
  return (own_k ? 1 : 3) + each * static_cast<uint32_t>(products);
}

std::string ProductRows::key() const {
  return fmt::format("x {}{}{}", fmt::join(buffers, " "), own_starts ? " starts" : "",
                     own_k ? " lengths" : "");
}

ProductLaunch vector_products_launch(const std::vector<VectorProduct>& products,
                                     const std::vector<ProductExtent>& extents, uint32_t rows,
                                     const ProductRows& x) {
  ProductLaunch launch;
  launch.groups[0] = 0;
  if (x.own_k)
    launch.params = {rows};
  else
    launch.params = {extents[0].k, rows, extents[0].x_stride};
  for (size_t i = 0; i < products.size(); ++i) {
    const auto& [n, k, x_stride, x_start] = extents[i];
    const uint32_t each = products[i].rows_of_group();
    launch.groups[0] += (n + each - 1) / each;
    if (x.own_k) launch.params.insert(launch.params.end(), {k, x_stride});
    if (x.own_starts) launch.params.push_back(x_start);
    launch.params.push_back(n);
    const auto layout = WeightParams::for_launch(products[i].weight, k);
    launch.params.insert(launch.params.end(), layout.begin(), layout.end());
  }
  if (rows == 0) launch.groups[0] = 0;
  return launch;
}

ProductLaunch expert_vector_launch(const VectorProduct& p, uint32_t n, uint32_t k, uint32_t slots,
                                   uint32_t experts, uint32_t x_share) {
  ProductLaunch launch = launch_of(p, n, k, {x_share, k, n, experts});
  launch.groups[1] = slots;
  return launch;
}

VectorProduct vector_product_for(VectorProduct p, uint32_t n, uint32_t k,
                                 const ir::Capabilities& device, uint32_t compute_units) {
  const uint32_t elements = WeightReader::unit_elements(p.weight);
  const uint32_t per_lane = std::max(1u, k / elements / VectorProduct::kWarp);
  const uint32_t streams = p.pair ? 2 : 1;
  if (!p.weight.is_block()) p.aligned = p.aligned && k % elements == 0;
  p.shuffles = std::ranges::count(device.subgroup_sizes, VectorProduct::kWarp) != 0;
  const uint32_t most_subgroups = std::max(1u, device.max_group_size / VectorProduct::kWarp);
  const uint64_t wanted = uint64_t(std::max(1u, compute_units)) * 12;
  if (p.x_rows == 1 && p.weight.is_block() && p.rounded &&
      read_rows_at_once(p, n, k, device, wanted))
    return p;
  p.subgroups = std::min(8u, most_subgroups);
  // What matters is bytes under way: on an H200 64 KiB for each compute unit, in registers. One row
  // of x: four units ahead of one row (of both matrices of a pair: two). With several rows of x,
  // weight rows share each read of it.
  if (p.weight.is_block() && !p.rounded) {
    // Every group rounds all of x first: few and large groups.
    p.subgroups = std::min(p.x_rows > 2 ? 8u : 16u, most_subgroups);
    p.rows_each = (p.x_rows > 2 ? 4u : 2u) / streams;
    p.units_ahead = p.x_rows > 2 ? 1 : 2;  // more would not fit the registers
  } else if (p.x_rows == 1) {
    // By trying every cut on an H200, through CUDA and Vulkan. Each read of x serves several rows,
    // and so do the loads under way: one unit of each is enough.
    const uint64_t bits = p.weight.is_block()
                              ? p.weight.block_bytes() * 8 / p.weight.block_elements()
                              : dtype_bytes(p.weight.plain()) * 8;
    const bool wide = bits >= 8, short_rows = per_lane <= 4;
    const uint32_t most = p.subgroups;
    p.subgroups = std::min(most, wide || short_rows ? 4u : 8u);
    p.split = std::min(p.subgroups, wide ? 4u : 2u);
    p.rows_each = (wide || !short_rows ? 4 : 2) / streams;
    p.units_ahead = wide || !short_rows ? 1 : 2;
    // Where the next launch overlaps, f16 by twice as many with twice as much under way: 93 and 88%
    // of the bandwidth for 86 (Vulkan: 74 for 77).
    if (!p.weight.is_block() && device.dependent_launch) {
      p.subgroups = p.split = most;
      p.units_ahead = 2;
    }
  } else {
    // Sums of eight rows of x by four weight rows would not fit the registers.
    p.rows_each = streams == 2 && p.x_rows > 4 ? 1 : (p.x_rows > 2 ? 4u : 2u) / streams;
    p.units_ahead = p.x_rows > 2 ? 1 : 2;
  }
  // Few rows: fewer of them each, and several subgroups share each as long as every lane keeps a
  // batch of its own.
  while (p.rows_each > 1 && uint64_t(n) / p.rows_each * p.split < wanted) p.rows_each /= 2;
  while (p.split > 1 && per_lane < p.split) p.split /= 2;
  while (p.split < p.subgroups && uint64_t(n) / p.rows_each * p.split < wanted &&
         per_lane >= p.split * 2 * p.units_ahead)
    p.split *= 2;
  if (!p.weight.is_block() || p.rounded) return p;
  const uint32_t sums =
      WeightReader::has_minus(p.weight) ? elements / WeightReader::parts_of_unit(p.weight) : 0;
  // As much of x as the shared memory holds, less what subgroups may need.
  const uint64_t room = std::min<uint64_t>(device.shared_bytes - 2048, 64u << 10);
  const auto batch = [&] { return VectorProduct::kWarp * p.split * p.units_ahead * elements; };
  if (ActivationTile::bytes(p.x_rows, batch(), sums) > room) p.split = p.units_ahead = 1;
  p.k_tile = batch();
  while (p.k_tile < k && ActivationTile::bytes(p.x_rows, p.k_tile * 2, sums) <= room) p.k_tile *= 2;
  return p;
}

std::optional<VectorProduct> rounding_product(VectorProduct p, uint32_t n,
                                              const ir::Capabilities& device,
                                              uint32_t compute_units) {
  constexpr uint32_t kBlock = VectorProduct::kWarp;
  if (n % kBlock != 0 || p.experts || p.y != DType::f32 || (p.weight.is_block() && !p.rounded))
    return std::nullopt;
  // All groups are to be there at once: with at most 64 registers a lane 32 subgroups on a compute
  // unit of an H200. Few rows get fewer turns instead.
  constexpr uint32_t kResident = 32, kUsual = 8, kRowsAtOnce = 4;
  const uint32_t units = std::max(1u, compute_units);
  const uint32_t most = device.max_group_size / VectorProduct::kWarp;
  const uint32_t groups_each = (n / kBlock + units - 1) / units;
  p.rounds = true;
  p.turns = 1;
  p.subgroups = p.split;
  if (p.x_rows == 1 && !p.at_once) {
    // A group that has a compute unit for itself: up to 128 registers for four rows, and no turns.
    const uint32_t at_once = kBlock / kRowsAtOnce * p.split;
    if (!p.pair && groups_each == 1 && at_once <= std::min(most, kResident / 2)) {
      p.subgroups = at_once;
      p.rows_each = kRowsAtOnce;
      p.units_ahead = 1;
    } else {
      p.rows_each = std::min(p.rows_each, p.pair ? 1u : 2u);
      p.units_ahead = 2;
    }
  }
  const uint32_t resident = p.x_rows == 1 ? kResident : 0;
  while (p.rows_of_turn() * 2 <= kBlock && p.subgroups * 2 <= most &&
         (p.subgroups < kUsual || p.subgroups * 2 * groups_each <= resident))
    p.subgroups *= 2;
  if (p.subgroups > most || kBlock % p.rows_of_turn() != 0) return std::nullopt;
  p.turns = kBlock / p.rows_of_turn();
  const uint32_t matrices = p.pair ? 2 : 1;
  // The parts of all sums, and what subgroups may need.
  if (uint64_t(kBlock) * p.split * matrices * p.x_rows * 4 + 8192 > device.shared_bytes)
    return std::nullopt;
  return p;
}

}  // namespace prism::ops
