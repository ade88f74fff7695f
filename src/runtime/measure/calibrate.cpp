// Measures a device with a few kernels and keeps the figures in the cache folder.
#include "runtime/measure/calibrate.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include <fmt/format.h>

#include "prism/error.h"
#include "runtime/discovery/remembered_choice.h"
#include "runtime/measure/calibration_record.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_kernels.h"

namespace prism {
namespace {

constexpr const char* kKind = "calibration";
constexpr const char* kNativeKind = "native-calibration";
constexpr double kLongEnough =
    2e-3;  // seconds of one launch; larger launches would not change the result

uint32_t groups_of(uint64_t count, const ir::Kernel& kernel) {
  return static_cast<uint32_t>((count + kernel.group_size - 1) / kernel.group_size);
}

double measure_bandwidth(const Device& device) {
  const ir::Kernel kernel = kernels::copy_words();
  const Program program = device.compile(kernel);
  // 256 MiB: five times the largest cache seen (50 MB), and still an eighth of a small card.
  const uint64_t most = std::min<uint64_t>(256ull << 20, device.free_bytes() / 8);
  double best = 0;
  for (uint64_t bytes = 1 << 20; bytes <= most; bytes *= 4) {
    const Buffer from = device.allocate(bytes), to = device.allocate(bytes);
    const auto count = static_cast<uint32_t>(bytes / 16);
    const double seconds = seconds_each(device.queue(), [&] {
      device.queue().launch(program, groups_of(count, kernel), {from, to}, {count});
    });
    // Keep the rate of the largest copy, not the best rate: smaller copies may fit a cache.
    best = 2.0 * static_cast<double>(bytes) / seconds;
    if (seconds > kLongEnough) break;
  }
  return best;
}

double measure_product(const Device& device, const ir::Kernel& kernel, DType operand,
                       uint32_t smallest,
                       const std::function<std::array<uint32_t, 3>(uint32_t)>& grid) {
  const Program program = device.compile(kernel);
  double rate = 0;
  for (uint32_t n = smallest; n <= 4096; n *= 2) {
    const uint64_t elements = static_cast<uint64_t>(n) * n;
    if (elements * 12 > device.free_bytes()) break;
    const Buffer a = device.allocate(elements * dtype_bytes(operand)),
                 b = device.allocate(elements * dtype_bytes(operand));
    const Buffer c = device.allocate(elements * 4);
    const std::vector<Buffer> buffers = {a, b, c};
    const std::vector<ParamValue> params = {n, n, n};
    // Use zeros: the clock of some processors depends on how many bits flip, and uninitialised
    // memory differs from run to run.
    const std::vector<std::byte> zeros(elements * dtype_bytes(operand));
    device.queue().write(a, zeros);
    device.queue().write(b, zeros);
    const double seconds = seconds_each(
        device.queue(), [&] { device.queue().launch(program, grid(n), buffers, params); });
    rate = std::max(rate, 2.0 * n * n * n / seconds);
    if (seconds > kLongEnough) break;
  }
  return rate;
}

double measure_f32(const Device& device) {
  return measure_product(device, kernels::matmul_f32(), DType::f32, 128, [](uint32_t n) {
    return std::array<uint32_t, 3>{n / 128, n / 128, 1};
  });
}

double measure_f16(const Device& device) {
  std::vector<kernels::MatmulTile> tiles(1);
  // Only large tiles keep hardware fragments busy. Without hardware fragments, even the small tile
  // needs many arrays.
  if (!device.info().capabilities.fragments.empty()) tiles.push_back({128, 128, 64, 2, 2, 2, true});
  double best = 0;
  for (const kernels::MatmulTile& tile : tiles) {
    const auto grid = [tile](uint32_t n) {
      return std::array<uint32_t, 3>{(n / tile.m) * (n / tile.n), 1, 1};
    };
    try {
      best = std::max(
          best, measure_product(device, kernels::matmul_fragments(tile), DType::f16, 128, grid));
    } catch (const Error& error) {
      // These codes mean that the tile is too large for this device.
      if (error.code() != ErrorCode::kNotSupported && error.code() != ErrorCode::kCompile) throw;
    }
  }
  return best;
}

double measure_launch(const Device& device) {
  constexpr uint32_t kLaunches = 100;
  const Program program = device.compile(kernels::increment());
  const Buffer y = device.allocate(4096 * 4);
  device.queue().write(y, std::vector<std::byte>(4096 * 4));
  const CommandGraph recording = device.queue().record([&] {
    for (uint32_t i = 0; i < kLaunches; ++i) device.queue().launch(program, 1, {y});
  });
  return seconds_each(device.queue(), [&] { device.queue().replay(recording); }) / kLaunches;
}

double measure_host_copy(const Device& device) {
  const uint64_t bytes = std::min<uint64_t>(64ull << 20, device.free_bytes() / 8);
  std::vector<std::byte> host(bytes);
  const Buffer buffer = device.allocate(bytes);
  double best = 0;
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    device.queue().write(buffer, host);
    device.queue().read(buffer, host);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * static_cast<double>(bytes) / seconds);
  }
  return best;
}

// In the order of kCalibrationFigures.
constexpr double (*kMeasurements[])(const Device&) = {measure_bandwidth, measure_f32, measure_f16,
                                                      measure_launch, measure_host_copy};
static_assert(std::size(kMeasurements) == kCalibrationFigures.size());

void keep(const char* kind, const DeviceInfo& info, const Calibration& calibration) {
  write_device_record(kind, info, calibration_record(calibration));
  forget_choices();  // they were based on the old figures
}

std::optional<Calibration> known(const char* kind, const DeviceInfo& info) {
  const auto record = read_device_record(kind, info);
  return record ? parse_calibration(*record) : std::nullopt;
}

}  // namespace

Calibration calibrate(const Device& device,
                      const std::function<void(const std::string&)>& progress) {
  Calibration calibration;
  for (size_t i = 0; i < kCalibrationFigures.size(); ++i) {
    const CalibrationFigure& figure = kCalibrationFigures[i];
    if (progress) progress(fmt::format("{}: measuring {}", device.id(), figure.name));
    calibration.*figure.member = kMeasurements[i](device);
  }
  keep(kKind, device.driver().info(), calibration);
  return calibration;
}

std::optional<Calibration> known_calibration(const DeviceInfo& info) { return known(kKind, info); }

void keep_native_calibration(const DeviceInfo& info, const Calibration& calibration) {
  keep(kNativeKind, info, calibration);
}

std::optional<Calibration> known_native_calibration(const DeviceInfo& info) {
  return known(kNativeKind, info);
}

double reference_seconds(const Calibration& c, Work work) {
  switch (work) {
    case Work::bandwidth:
      return 1e9 / c.bandwidth;
    case Work::f32:
      return 1e12 / c.f32_rate;
    case Work::f16:
      return 1e12 / c.f16_rate;
    case Work::latency:
      return 1000 * c.launch_seconds;
    case Work::balanced:
      break;
  }
  // One token of a language model with 7 billion 4-bit weights (4 GB read, 300 launches), its share
  // of a prompt (32 rows, 14 GFLOP each), and one row of logits copied to the host.
  return 4e9 / c.bandwidth + 32 * 14e9 / c.f16_rate + 300 * c.launch_seconds + 0.5e6 / c.host_copy;
}

}  // namespace prism
