// How fast ops are on a device: each at a few sizes, as replayed plans, beside the device's own
// measured peaks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "prism/tensor.h"
#include "runtime/measure/calibrate.h"

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

// The CPU's peaks as a calibration: a native kernel costs a call, and the host is where it is.
Calibration native_calibration(const DevicePeaks& peaks);

enum class BenchLimit { bandwidth, f32, f16, quantised };
const char* limit_name(BenchLimit limit);  // "bandwidth", "f32 product"

struct BenchCase {
  std::string op;    // "softmax"
  std::string what;  // "f32 [4096, 4096]"
  double bytes = 0;  // that one use must move
  double flops = 0;
  bool is_product = false;     // else memory is what limits it
  DType compute = DType::f32;  // in which a product multiplies
  bool is_quantised = false;   // a product with quantised weights
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
  double rotated_bytes = 0;  // of all uses before the first comes again
  bool is_product = false;
  BenchLimit product_kind = BenchLimit::f32;  // of a product: its kind
  BenchLimit limit = BenchLimit::bandwidth;   // what it could reach first
  double share = 0;                           // of that
  bool in_cache = false;  // too small to be read from memory, and faster than it: no share
};

// Sizes fit the device: a card gets more than its caches hold, a software device little.
std::vector<BenchCase> bench_cases(const Device& device);
// Without its share, which set_shares() finds.
BenchResult run_bench(const BenchCase& bench, const Device& device);

// The share of each result, of the limit that it could reach first. An op may be faster than the
// kernels of the calibration: then its rate is the peak. So no share is above 1.
void set_shares(std::span<BenchResult> results, DevicePeaks& peaks);

}  // namespace prism
