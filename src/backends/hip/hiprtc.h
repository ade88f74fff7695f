// hiprtc, ROCm's run-time compiler: HIP text to a code object for one chip.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_runtime/gpu_rtc.h"
#include "base/system/dynamic_library.h"

namespace prism::hip {

class Hiprtc {
 public:
  // PRISM_HIPRTC_LIBRARY, else the library of the runtime's own version, else the runtime itself,
  // which holds the compiler before ROCm 5.3. Null with the reason when there is none.
  static std::shared_ptr<Hiprtc> open(const DynamicLibrary& runtime, std::string* reason);

  std::string version_text() const { return compiler_.version_text(); }
  const std::string& library() const { return compiler_.library().name(); }

  // Empty when text can be compiled for the chip; else why not. Tried in a child process once for
  // each version of the library: old ones crash on a chip they do not know.
  std::string refusal_of(const std::string& gfx) const;

  gpu::Compiled compile(const std::string& text, const std::string& file,
                        const std::string& gfx) const;
  // The options besides the chip, for cache keys.
  static const std::vector<const char*>& options();

 private:
  gpu::RunTimeCompiler compiler_;
};

}  // namespace prism::hip
