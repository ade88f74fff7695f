// The kernels shipped with Prism and the cases that check them: inputs, launch and a float64
// reference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "prism/dtype.h"
#include "prism/kernel_ir.h"

namespace prism {

// One launch with its inputs and expected results.
struct KernelCase {
  std::string name;  // "n=1000"
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<uint32_t> params;
  std::vector<std::vector<std::byte>> buffers;  // contents before the launch; outputs hold poison
  // Expected contents of each buffer after the launch as float64, one per stored element; empty:
  // not compared.
  std::vector<std::vector<double>> expected;
  // Replaces expected for contents too large to list: returns empty if correct, else one line.
  std::function<std::string(std::span<const std::vector<std::byte>>)> verify;
  double tolerance = 0;        // normalised mean square error allowed; 0: every bit equal
  double work_bytes = 0;       // moved, for timing
  double work_operations = 0;  // floating point, for timing
};

struct SampleKernel {
  std::string name;
  std::string summary;  // one line for `prism kernel list`
  std::function<ir::Kernel()> make;
  // quick: only small sizes. Cases that need much memory say so in their name and are only in the
  // full list.
  std::function<std::vector<KernelCase>(uint64_t seed, bool quick)> cases;
};

const std::vector<SampleKernel>& sample_kernels();
const SampleKernel& find_sample_kernel(
    const std::string& name);  // throws kNotFound listing the names

// Compares contents with the expected ones; returns empty if they match, else one line with
// location and error.
std::string compare(const KernelCase& expected, const ir::Kernel& kernel,
                    std::span<const std::vector<std::byte>> contents);

}  // namespace prism
