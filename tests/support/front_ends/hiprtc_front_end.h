// AMD's run-time compiler, and clang for the chips that Debian's is too old for, on HIP text; no
// GPU needed.
#pragma once

#include <string>
#include <vector>

#include "support/front_ends/front_end.h"

namespace prism::test {

inline constexpr const char* kHiprtc = "PRISM_TEST_HIPRTC";
inline constexpr const char* kClang19 = "PRISM_TEST_CLANG19";

// Which front end compiles for this chip: kHiprtc up to gfx1030, kClang19 for gfx94x, gfx11 and
// gfx12.
const char* hip_front_end(const std::string& arch);

// arch: "gfx90a". hiprtc brings HIP's built-in declarations (__global__, threadIdx), clang is
// called with -nogpuinc and brings none, so text that passes both declares what it uses. Throws
// std::runtime_error when the front end cannot be had; text that does not compile is a result.
CompileResult compile_hip(const std::string& text, const std::string& arch,
                          const std::vector<std::string>& options = {});

}  // namespace prism::test
