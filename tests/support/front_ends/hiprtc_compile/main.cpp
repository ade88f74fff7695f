// hiprtc in its own process: its LLVM conflicts with the one in Intel's runtimes (both register the
// same command line options and abort), and it crashes on unknown chips.
//
// usage: hiprtc_compile LIBRARY SOURCE OUTPUT [OPTION...]; prints the log; exit status 1: rejected,
// 2: no compiler.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "support/front_ends/rtc.h"

using prism::test::CompileResult;
using prism::test::RtcCode;
using prism::test::RtcInterface;
using prism::test::SharedLibrary;

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::fputs("usage: hiprtc_compile LIBRARY SOURCE OUTPUT [OPTION...]\n", stderr);
    return 2;
  }
  std::string text;
  if (std::FILE* file = std::fopen(argv[2], "rb")) {
    for (int c = 0; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    std::fclose(file);
  }
  const SharedLibrary library(argv[1]);
  const RtcCode code{library.function<int(RtcInterface::Program, size_t*)>("hiprtcGetCodeSize"),
                     library.function<int(RtcInterface::Program, char*)>("hiprtcGetCode")};
  const CompileResult result =
      compile_rtc(RtcInterface(library, "hiprtc"), code, text, "kernel.hip",
                  std::vector<std::string>(argv + 4, argv + argc));
  std::fputs(result.log.c_str(), stdout);
  if (!result.ok) return 1;
  std::FILE* file = std::fopen(argv[3], "wb");
  if (file == nullptr) return 2;
  std::fwrite(result.code.data(), 1, result.code.size(), file);
  return std::fclose(file) == 0 ? 0 : 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
