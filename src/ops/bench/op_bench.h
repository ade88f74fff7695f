// How fast ops are on a device: each at a few sizes, as replayed plans, beside the device's own
// measured peaks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "prism/tensor.h"

namespace prism {

// What a device was measured to do at best: no figure of a data sheet.
struct DevicePeaks {
  double bandwidth = 0;  // bytes a second
  double f32_rate = 0;   // operations a second of an f32 product
  double f16_rate = 0;
  double quantised_rate = 0;  // of one with quantised weights; 0: as those of f16
};
// From the calibration, which is made where there is none; of the CPU by its own kernels.
DevicePeaks measured_peaks(const Device& device,
                           const std::function<void(const std::string&)>& progress = {});

enum class BenchLimit { bandwidth, f32, f16, quantised };
const char* limit_name(BenchLimit limit);  // "bandwidth", "f32 product"

struct BenchCase {
  std::string op;    // "softmax"
  std::string what;  // "f32 [4096, 4096]"
  double bytes = 0;  // that one use must move
  double flops = 0;
  bool is_product = false;     // else memory is what limits it
  DType compute = DType::f32;  // in which a product multiplies
  std::function<std::vector<Tensor>()> inputs;
  std::function<Tensor(std::span<const Tensor>)> compute_one;
};

struct BenchResult {
  std::string op, what;
  std::string problem;    // not empty: it did not run
  std::string elsewhere;  // why a part of it ran on the CPU
  double seconds = 0;     // of one use
  double bytes_rate = 0;  // a second
  double flops_rate = 0;
  BenchLimit limit = BenchLimit::bandwidth;  // what it could reach first
  double share = 0;                          // of that
};

// Sizes fit the device: a card gets more than its caches hold, a software device little.
std::vector<BenchCase> bench_cases(const Device& device);
BenchResult run_bench(const BenchCase& bench, const Device& device, const DevicePeaks& peaks);

}  // namespace prism
