// Compiles SYCL text with Intel's run-time compiler and runs it on Intel's CPU runtime.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/front_ends/front_end.h"

namespace prism::test {

inline constexpr const char* kSyclRoot = "PRISM_TEST_SYCL_ROOT";

// Builds a folder's sources against SYCL's headers, once, and returns the library's path: SYCL is
// installed by make test-devices, after the project was built. linked: libraries besides SYCL's.
// Throws std::runtime_error if SYCL is not available.
std::filesystem::path build_sycl_plugin(const std::filesystem::path& folder,
                                        const std::vector<std::filesystem::path>& linked = {});

// The name of the device that kernels run on. Throws std::runtime_error if SYCL is not available.
std::string sycl_device_name();

// One compiled source, which may hold many kernels: a compile takes seconds, mostly startup.
class SyclProgram {
 public:
  // By default the compiler contracts a * b + c, and ignores a pragma in the text. Throws
  // std::runtime_error if SYCL is not available; text that does not compile is a result (ok()
  // false).
  explicit SyclProgram(const std::string& text,
                       const std::vector<std::string>& options = {"-ffp-contract=off"});
  ~SyclProgram();
  SyclProgram(const SyclProgram&) = delete;
  SyclProgram& operator=(const SyclProgram&) = delete;

  bool ok() const { return program_ != nullptr; }
  const std::string& log() const { return log_; }

  struct Launch {
    std::string entry;
    std::array<uint32_t, 3> group_counts{1, 1, 1};  // x, y, z
    std::array<uint32_t, 3> group_size{1, 1, 1};    // x, y, z
    int dimensions =
        1;  // 1 or 3, as in the text's nd_range_kernel<...>; with 3, x is SYCL's dimension 2
  };

  // Passes pointers to the buffers, then the params, 32 bits each. Every buffer is read back.
  CompileResult run(const Launch& launch, std::vector<std::vector<uint8_t>>& buffers,
                    const std::vector<uint32_t>& params = {});

 private:
  void* program_ = nullptr;
  std::string log_;
};

// Compiles and runs one kernel.
CompileResult run_sycl(const std::string& text, const SyclProgram::Launch& launch,
                       std::vector<std::vector<uint8_t>>& buffers,
                       const std::vector<uint32_t>& params = {});

}  // namespace prism::test
