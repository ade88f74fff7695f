// The calling convention shared by NVIDIA's and AMD's run-time compilers.
#pragma once

#include <string>
#include <vector>

#include "support/front_ends/front_end.h"
#include "support/shared_library.h"

namespace prism::test {

// hiprtc copies NVRTC's interface; only the prefix and the names of the results differ.
struct RtcInterface {
  using Program = void*;

  // prefix: "nvrtc" or "hiprtc".
  RtcInterface(const SharedLibrary& library, const std::string& prefix);

  int (*create)(Program*, const char* text, const char* name, int headers, const char* const*,
                const char* const*);
  int (*compile)(Program, int option_count, const char* const* options);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*destroy)(Program*);
  const char* (*error_string)(int);
};

struct RtcCode {
  int (*size)(RtcInterface::Program, size_t*);
  int (*get)(RtcInterface::Program, char*);
};

CompileResult compile_rtc(const RtcInterface& rtc, const RtcCode& code, const std::string& text,
                          const std::string& name, const std::vector<std::string>& options);

}  // namespace prism::test
