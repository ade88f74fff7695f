// SYCL text compiled by Intel's run-time compiler and run on Intel's CPU runtime.
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

// Builds a folder's sources against SYCL's headers, once, and gives the library's path: SYCL comes
// with make test-devices, after the project was built. linked: libraries besides SYCL's. Throws
// std::runtime_error when it cannot be had.
std::filesystem::path build_sycl_plugin(const std::filesystem::path& folder,
                                        const std::vector<std::filesystem::path>& linked = {});

// The name of the device that kernels run on. Throws std::runtime_error when SYCL cannot be had.
std::string sycl_device_name();

// One compiled text, of many kernels if it likes: a compile costs seconds, most of them before the
// first kernel.
class SyclProgram {
 public:
  // Unless told otherwise the compiler contracts a * b + c, and a pragma in the text does not stop
  // it. Throws std::runtime_error when SYCL cannot be had; text that does not compile is a result
  // (ok() false).
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
        1;  // 1 or 3, as the text's nd_range_kernel<...> says; with 3, x is SYCL's dimension 2
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
