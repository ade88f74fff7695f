// AMD's run-time compiler for HIP text, and clang for chips that Debian's hiprtc does not support;
// needs no GPU.
#pragma once

#include <string>
#include <vector>

#include "support/front_ends/front_end.h"

namespace prism::test {

inline constexpr const char* kHiprtc = "PRISM_TEST_HIPRTC";
inline constexpr const char* kClang19 = "PRISM_TEST_CLANG19";

// The front end for a chip: kHiprtc up to gfx1030, kClang19 for gfx94x, gfx11 and gfx12.
const char* hip_front_end(const std::string& arch);

// arch: "gfx90a". hiprtc predefines HIP's declarations (__global__, threadIdx); clang is called
// with -nogpuinc and has none, so text that passes both declares what it uses. Throws
// std::runtime_error if the front end is not available; text that does not compile is a result.
CompileResult compile_hip(const std::string& text, const std::string& arch,
                          const std::vector<std::string>& options = {});

}  // namespace prism::test
