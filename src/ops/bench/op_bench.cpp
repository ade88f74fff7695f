// Times the bench cases and computes their shares of the device's limits.
#include "ops/bench/op_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "prism/error.h"
#include "tensor/plan/plan.h"

namespace prism {

namespace {

using Clock = std::chrono::steady_clock;

// Bytes of all uses of an op in one plan. Each use has its own inputs, so that no cache holds them
// all: five times the largest cache of the cards seen (50 MB), and enough for the last-level cache
// of most processors.
constexpr double kRotatedBytes = 256e6;
constexpr double kMeasuredSeconds = 0.1;
constexpr int kMostUses = 32;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the best of a few rounds of about kMeasuredSeconds each. Uses the host's clock, because a
// device's clock omits the time that a plan over several devices waits.
double best_seconds(Plan& plan, const Device& device) {
  const auto runs = [&](int count) {
    return seconds_of([&] {
      for (int i = 0; i < count; ++i) plan.run();
      if (!device.info().is_cpu) device.queue().wait();
    });
  };
  runs(2);  // compiles, records, warms
  const double once = runs(1);
  const int count = std::clamp(static_cast<int>(kMeasuredSeconds / std::max(once, 1e-7)), 1, 2000);
  double best = once;
  for (int round = 0; round < 3; ++round) best = std::min(best, runs(count) / count);
  return best;
}

}  // namespace

const char* limit_name(BenchLimit limit) {
  switch (limit) {
    case BenchLimit::bandwidth:
      return "bandwidth";
    case BenchLimit::f32:
      return "f32 product";
    case BenchLimit::f16:
      return "f16 product";
    case BenchLimit::quantised:
      return "8-bit product";
  }
  return "";
}

DevicePeaks measured_peaks(const Device& device,
                           const std::function<void(const std::string&)>& progress) {
  if (!device.info().is_cpu) {
    const auto known = known_calibration(device.info());
    const Calibration figures = known ? *known : calibrate(device, progress);
    return {figures.bandwidth, figures.f32_rate, figures.f16_rate};
  }
  // The CPU's calibration measures the interpreter, but ops run native kernels. Those over much
  // memory and a large product come closest to the peaks.
  if (progress) progress("measuring the CPU's memory and products");
  DevicePeaks peaks;
  for (const BenchCase& bench : bench_cases(device)) {
    const bool memory = bench.op == "add" || bench.op == "sum";
    if (!memory && bench.op != "matmul") continue;
    const BenchResult result = run_bench(bench, device);
    double& peak = memory ? peaks.bandwidth : peaks.f32_rate;
    peak = std::max(peak, memory ? result.bytes_rate : result.flops_rate);
  }
  peaks.f16_rate = peaks.quantised_rate = peaks.f32_rate;
  keep_native_calibration(device.info(), native_calibration(peaks));
  return peaks;
}

Calibration native_calibration(const DevicePeaks& peaks) {
  constexpr double kCallSeconds = 1e-7;
  return {peaks.bandwidth, peaks.f32_rate, peaks.f16_rate, kCallSeconds, peaks.bandwidth};
}

BenchResult run_bench(const BenchCase& bench, const Device& device) {
  BenchResult result;
  result.op = bench.op;
  result.what = bench.what;
  result.is_product = bench.is_product;
  result.product_kind = bench.is_quantised            ? BenchLimit::quantised
                        : bench.compute == DType::f32 ? BenchLimit::f32
                                                      : BenchLimit::f16;
  try {
    const bool software = device.info().software && !device.info().is_cpu;
    const int uses = software ? 1
                              : static_cast<int>(std::clamp(std::ceil(kRotatedBytes / bench.bytes),
                                                            1.0, static_cast<double>(kMostUses)));
    result.rotated_bytes = uses * bench.bytes;
    std::vector<Tensor> outputs;
    for (int use = 0; use < uses; ++use) {
      const std::vector<Tensor> inputs = bench.inputs();
      eval(inputs);
      outputs.push_back(bench.compute_one(inputs));
    }
    Plan plan(outputs);
    for (const PlanStep& step : plan.steps())
      if (!step.reason.empty()) result.elsewhere = step.reason;
    result.seconds = best_seconds(plan, device) / uses;
  } catch (const Error& error) {
    result.problem = error.what();
    return result;
  }
  result.bytes_rate = bench.bytes / result.seconds;
  result.flops_rate = bench.flops / result.seconds;
  return result;
}

namespace {

double& product_peak(DevicePeaks& peaks, BenchLimit kind) {
  if (kind == BenchLimit::f32) return peaks.f32_rate;
  return kind == BenchLimit::quantised && peaks.quantised_rate > 0 ? peaks.quantised_rate
                                                                   : peaks.f16_rate;
}

// Returns whether a peak was raised, which may change the limits of other results.
bool set_share(BenchResult& result, DevicePeaks& peaks) {
  double& product = product_peak(peaks, result.product_kind);
  const double of_memory = peaks.bandwidth > 0 ? result.bytes_rate / peaks.bandwidth : 0;
  const double of_product = result.is_product && product > 0 ? result.flops_rate / product : 0;
  // Faster than memory bandwidth: all data is in a cache, so only arithmetic can be the limit.
  const bool is_cached = of_memory > 1 && result.rotated_bytes < kRotatedBytes;
  const bool is_memory = of_product == 0 || (of_memory >= of_product && !is_cached);
  result.share = is_memory ? of_memory : of_product;
  result.limit = is_memory                                ? BenchLimit::bandwidth
                 : &product == &peaks.quantised_rate      ? BenchLimit::quantised
                 : result.product_kind == BenchLimit::f32 ? BenchLimit::f32
                                                          : BenchLimit::f16;
  result.in_cache = is_memory && is_cached;
  if (result.share <= 1 || result.in_cache) return false;
  (is_memory ? peaks.bandwidth : product) = is_memory ? result.bytes_rate : result.flops_rate;
  return true;
}

}  // namespace

void set_shares(std::span<BenchResult> results, DevicePeaks& peaks) {
  // Terminates: peaks only rise, and only to the rate of a result.
  for (bool raised = true; raised;) {
    raised = false;
    for (BenchResult& result : results)
      if (result.problem.empty()) raised = set_share(result, peaks) || raised;
  }
}

}  // namespace prism
