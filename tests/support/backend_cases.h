// The cases that every backend must pass, run by each backend's test on its devices. A backend
// lists the unsupported cases with reasons.
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
  std::string dialect;                  // of the printed text: "wgsl"
  std::function<Discovery()> discover;  // a new discovery, for cases that need their own device
  size_t number = 0;                    // index of the device to test
  std::map<std::string, std::string> cannot;     // unsupported cases and why; each is a skip
  std::function<void(DeviceDriver&)> lose = {};  // loses the device permanently, if supported
};

struct BackendCase {
  std::string name;
  std::function<void(const BackendUnderTest&, const Device&)> run;
};
const std::vector<BackendCase>& backend_cases();
// Runs a case on the device, or skips it if the backend does not support it.
void run_backend_case(const BackendCase& which, const BackendUnderTest& backend,
                      const Device& device);
inline std::string backend_case_name(const testing::TestParamInfo<BackendCase>& info) {
  return info.param.name;
}

// --- shared by the tests of single backends
ir::Kernel weighted_sum();  // y = a + 3 b, over count words
std::vector<std::byte> random_bytes(uint64_t seed, size_t count);
uint64_t printed_seed();
// One case of every `step`-th library kernel, starting elsewhere in each run. At most one may be
// unsupported.
void check_library_kernels(const Device& device, size_t step);
// The suite of tensor ops, limited to this many cases and programs.
void check_tensor_ops(const Device& device, size_t cases, size_t programs);

// A cache folder for one test.
class OwnCache {
 public:
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::map<std::string, std::string> contents() const;  // file contents by path

 private:
  TemporaryFolder folder_;
  ScopedVariable variable_{"PRISM_CACHE_DIR", folder_.path().string()};
};

}  // namespace prism::test
