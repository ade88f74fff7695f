// What every backend must do, as one list of cases that the test of each backend runs over its
// devices; a backend names those it cannot do, with the reason.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "support/doubles/double_cases.h"
#include "support/doubles/driver_double.h"
#include "support/run_program.h"

namespace prism::test {

struct BackendUnderTest {
  std::string dialect;                        // of its texts: "wgsl"
  std::function<Discovery()> discover;        // anew: a device of a case's own
  size_t number = 0;                          // which of its devices
  std::map<std::string, std::string> cannot;  // cases, and why; each is a skip in the results
  std::function<void(DeviceDriver&)> lose =
      {};  // loses the device for good, where it can be told to
};

struct BackendCase {
  std::string name;
  std::function<void(const BackendUnderTest&, const Device&)> run;
};
const std::vector<BackendCase>& backend_cases();
// Runs one on the device, or skips what the backend cannot do.
void run_backend_case(const BackendCase& which, const BackendUnderTest& backend,
                      const Device& device);
inline std::string backend_case_name(const testing::TestParamInfo<BackendCase>& info) {
  return info.param.name;
}

// --- what tests of one backend use besides
ir::Kernel weighted_sum();  // y = a + 3 b, over count words
std::vector<std::byte> random_bytes(uint64_t seed, size_t count);
uint64_t printed_seed();
// One case of every `step`-th kernel of the library, others at each run: at most one is refused.
void check_library_kernels(const Device& device, size_t step);
// The suite of tensor ops, over so many cases and programs.
void check_tensor_ops(const Device& device, size_t cases, size_t programs);

// The cache folder of one test.
class OwnCache {
 public:
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::map<std::string, std::string> contents() const;  // of its files, by path

 private:
  TemporaryFolder folder_;
  ScopedVariable variable_{"PRISM_CACHE_DIR", folder_.path().string()};
};

}  // namespace prism::test
