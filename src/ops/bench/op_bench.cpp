#include "ops/bench/op_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "prism/error.h"
#include "runtime/measure/calibrate.h"
#include "tensor/plan/plan.h"

namespace prism {

namespace {

using Clock = std::chrono::steady_clock;

// Uses of an op in one plan, each with its own inputs, so that no cache holds them: twice the
// largest cache of the cards met (50 MB), and enough for the last level of most processors.
constexpr double kRotatedBytes = 256e6;
constexpr double kMeasuredSeconds = 0.1;
constexpr int kMostUses = 32;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The best of a few rounds, each of about kMeasuredSeconds of runs; the host's clock, since a
// device's would leave out what a plan over several devices waits for.
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
  // The calibration of the CPU is that of the interpreter; ops have native kernels, whose best
  // are those over much memory and a large product.
  if (progress) progress("measuring the CPU's memory and products");
  DevicePeaks peaks;
  for (const BenchCase& bench : bench_cases(device)) {
    const bool memory = bench.op == "add" || bench.op == "sum";
    if (!memory && bench.op != "matmul") continue;
    const BenchResult result = run_bench(bench, device, peaks);
    double& peak = memory ? peaks.bandwidth : peaks.f32_rate;
    peak = std::max(peak, memory ? result.bytes_rate : result.flops_rate);
  }
  peaks.f16_rate = peaks.f32_rate;
  // A native kernel costs a call, and the host is where it is.
  constexpr double kCallSeconds = 1e-7;
  keep_native_calibration(device.info(), {peaks.bandwidth, peaks.f32_rate, peaks.f16_rate,
                                          kCallSeconds, peaks.bandwidth});
  return peaks;
}

BenchResult run_bench(const BenchCase& bench, const Device& device, const DevicePeaks& peaks) {
  BenchResult result;
  result.op = bench.op;
  result.what = bench.what;
  try {
    const bool software = device.info().software && !device.info().is_cpu;
    const int uses =
        software ? 1 : std::clamp(static_cast<int>(kRotatedBytes / bench.bytes), 1, kMostUses);
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
  const bool half = bench.compute != DType::f32;
  const double rate = half ? peaks.f16_rate : peaks.f32_rate;
  const double by_memory = peaks.bandwidth > 0 ? bench.bytes / peaks.bandwidth : 0;
  const double by_products = bench.is_product && rate > 0 ? bench.flops / rate : 0;
  if (by_products > by_memory) result.limit = half ? BenchLimit::f16 : BenchLimit::f32;
  result.share = std::max(by_memory, by_products) / result.seconds;
  return result;
}

}  // namespace prism
