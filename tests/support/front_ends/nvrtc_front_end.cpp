// Loads NVRTC and compiles to PTX or, for a real architecture, to a cubin.
#include "support/front_ends/nvrtc_front_end.h"

#include "support/front_ends/rtc.h"

namespace prism::test {

CompileResult compile_cuda(const std::string& text, const std::string& arch,
                           const std::vector<std::string>& options, const char* library_variable) {
  const SharedLibrary library(require_front_end(library_variable));
  const bool real = arch.rfind("sm_", 0) == 0;
  const RtcCode code{
      library.function<int(RtcInterface::Program, size_t*)>(real ? "nvrtcGetCUBINSize"
                                                                 : "nvrtcGetPTXSize"),
      library.function<int(RtcInterface::Program, char*)>(real ? "nvrtcGetCUBIN" : "nvrtcGetPTX")};
  std::vector<std::string> all{"--gpu-architecture=" + arch};
  all.insert(all.end(), options.begin(), options.end());
  return compile_rtc(RtcInterface(library, "nvrtc"), code, text, "kernel.cu", all);
}

}  // namespace prism::test
