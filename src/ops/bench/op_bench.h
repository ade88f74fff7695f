// The bench of ops: times each op at a few sizes as replayed plans and compares it with the
// device's measured peaks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "prism/tensor.h"
#include "runtime/measure/calibrate.h"

namespace prism {

// The best rates measured on a device; none comes from a data sheet.
struct DevicePeaks {
  double bandwidth = 0;  // bytes per second
  double f32_rate = 0;   // operations per second of an f32 product
  double f16_rate = 0;
  double quantised_rate = 0;  // of a product with quantised weights; 0: the same as f16_rate
};
// Reads the calibration, or calibrates first if there is none. Measures native kernels on the CPU.
DevicePeaks measured_peaks(const Device& device,
                           const std::function<void(const std::string&)>& progress = {});

// Returns the CPU's peaks as a calibration: a launch costs one function call, and host copies run
// at memory bandwidth.
Calibration native_calibration(const DevicePeaks& peaks);

enum class BenchLimit { bandwidth, f32, f16, quantised };
const char* limit_name(BenchLimit limit);  // "bandwidth", "f32 product"

struct BenchCase {
  std::string op;    // "softmax"
  std::string what;  // "f32 [4096, 4096]"
  double bytes = 0;  // moved by one use
  double flops = 0;
  bool is_product = false;     // false: limited by memory
  DType compute = DType::f32;  // type in which a product multiplies
  bool is_quantised = false;   // a product with quantised weights
  std::function<std::vector<Tensor>()> inputs;
  std::function<Tensor(std::span<const Tensor>)> compute_one;
};

struct BenchResult {
  std::string op, what;
  std::string problem;    // why it did not run; empty: it ran
  std::string elsewhere;  // why a part of it ran on the CPU
  double seconds = 0;     // of one use
  double bytes_rate = 0;  // per second
  double flops_rate = 0;
  double rotated_bytes = 0;  // of all uses of one run of the plan
  bool is_product = false;
  BenchLimit product_kind = BenchLimit::f32;  // meaningful for products only
  BenchLimit limit = BenchLimit::bandwidth;   // the limit that it would reach first
  double share = 0;                           // of that limit
  bool in_cache = false;  // small enough for a cache and faster than memory: no share
};

// The sizes suit the device: larger than the caches of a card, small for a software device.
std::vector<BenchCase> bench_cases(const Device& device);
// Does not set the share; set_shares() does.
BenchResult run_bench(const BenchCase& bench, const Device& device);

// Sets the share of each result: its rate relative to the limit that it would reach first. If an op
// is faster than the calibration's kernels, its rate becomes the peak, so no share is above 1.
void set_shares(std::span<BenchResult> results, DevicePeaks& peaks);

}  // namespace prism
