// NVIDIA's run-time compiler for CUDA text; needs no GPU.
#pragma once

#include <string>
#include <vector>

#include "support/front_ends/front_end.h"

namespace prism::test {

inline constexpr const char* kNvrtc12 = "PRISM_TEST_NVRTC_12";  // supports compute_50 to sm_121
inline constexpr const char* kNvrtc13 = "PRISM_TEST_NVRTC_13";  // supports compute_75 and later

// arch: "compute_50" stops at PTX, "sm_90" continues through ptxas to a cubin. Throws
// std::runtime_error if the library is not available; text that does not compile is a result.
CompileResult compile_cuda(const std::string& text, const std::string& arch,
                           const std::vector<std::string>& options = {},
                           const char* library_variable = kNvrtc12);

}  // namespace prism::test
