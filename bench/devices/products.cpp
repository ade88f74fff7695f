// Matrix products with f32 tiles and f16 fragments, against cuBLAS on NVIDIA cards if it is
// installed.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bench.h"
#include "peer_cublas.h"
#include "prism/error.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::bench {
namespace {

struct Product {
  const ir::Kernel kernel;
  std::array<uint32_t, 3> groups;
  DType operand;
};

double rate_of(const Device& device, const Product& product, uint32_t n) {
  const Program program = device.compile(product.kernel);
  const uint64_t elements = static_cast<uint64_t>(n) * n;
  const std::vector<float> values = random_values(elements);
  std::vector<uint16_t> halves;
  if (product.operand == DType::f16) {
    for (const float value : values) halves.push_back(f16_from_f32(value));
  }
  const Buffer a = halves.empty() ? device.upload(values) : device.upload(halves);
  const Buffer b = halves.empty() ? device.upload(values) : device.upload(halves);
  const Buffer c = device.allocate(elements * 4);
  const std::vector<Buffer> buffers = {a, b, c};
  const std::vector<ParamValue> params = {n, n, n};
  const double seconds = seconds_each(
      device.queue(), [&] { device.queue().launch(program, product.groups, buffers, params); },
      0.1);
  return 2.0 * n * n * n / seconds;
}

Line line_of(const Device& device, const std::string& what, double rate, std::optional<double> peer,
             double floor) {
  Line line;
  line.device = device.id();
  line.what = what;
  line.unit = "TFLOP/s";
  line.figure = rate * 1e-12;
  if (peer) {
    line.peer = "cuBLAS";
    line.peer_figure = *peer * 1e-12;
    line.floor = floor;
  }
  return line;
}

}  // namespace

std::vector<float> random_values(uint64_t count) {
  std::vector<float> values(count);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;  // Knuth and Lewis
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1;
  }
  return values;
}

std::vector<Line> bench_products(const Device& device) {
  const DeviceInfo& info = device.info();
  const bool host = info.software || info.is_cpu;
  const uint32_t n = info.is_cpu ? 128 : host ? 512 : 8192;
  std::vector<Line> lines;
  std::string note;
  std::optional<CublasRates> peer;
  if (info.backend == "cuda") peer = cublas_rates(n, &note);

  const double f32 = rate_of(device, {kernels::matmul_f32(), {n / 128, n / 128, 1}, DType::f32}, n);
  lines.push_back(line_of(device, fmt::format("f32 product, {0} x {0} x {0}", n), f32,
                          peer ? std::optional(peer->f32) : std::nullopt, 0.6));

  // The best of a few tiles: the choice depends on the card's registers and shared memory.
  double f16 = 0;
  std::string best;
  std::vector<kernels::MatmulTile> tiles(1);
  if (!info.capabilities.fragments.empty()) {
    tiles.push_back({64, 64, 32, 2, 2, 2});
    tiles.push_back({128, 128, 64, 2, 2, 2, true});
    tiles.push_back(
        {128, 256, 64, 2, 4, 3, true});  // the fastest on an H200: 96 KiB of operands per group
  }
  for (kernels::MatmulTile& tile : tiles) {
    if (n % tile.m != 0 || n % tile.n != 0) continue;
    tile.result = DType::f16;
    try {
      const Product product{
          kernels::matmul_fragments(tile), {(n / tile.m) * (n / tile.n), 1, 1}, DType::f16};
      const double rate = rate_of(device, product, n);
      if (rate <= f16) continue;
      f16 = rate;
      best = fmt::format("tile {}x{}x{}, {}x{} subgroups, {} stages{}", tile.m, tile.n, tile.k,
                         tile.warps_m, tile.warps_n, tile.stages,
                         tile.run_ahead ? ", operands prefetched" : "");
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported && error.code() != ErrorCode::kCompile) throw;
    }
  }
  Line line = line_of(device, fmt::format("f16 product by fragments, {0} x {0} x {0}", n), f16,
                      peer ? std::optional(peer->f16) : std::nullopt, 0.5);
  line.note = best + (note.empty() ? "" : "; " + note);
  lines.push_back(line);
  return lines;
}

}  // namespace prism::bench
