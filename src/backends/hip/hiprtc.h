// hiprtc, ROCm's run-time compiler: compiles HIP text to a code object for one chip.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_runtime/gpu_rtc.h"
#include "base/system/dynamic_library.h"

namespace prism::hip {

class Hiprtc {
 public:
  // Opens PRISM_HIPRTC_LIBRARY, else the library with the runtime's version, else the runtime
  // itself, which contains the compiler before ROCm 5.3. Returns null and sets *reason if there is
  // none.
  static std::shared_ptr<Hiprtc> open(const DynamicLibrary& runtime, std::string* reason);

  std::string version_text() const { return compiler_.version_text(); }
  const std::string& library() const { return compiler_.library().name(); }

  // Why text cannot be compiled for the chip; empty if it can. Probed in a child process once per
  // library version, because old ones crash on unknown chips.
  std::string refusal_of(const std::string& gfx) const;

  gpu::Compiled compile(const std::string& text, const std::string& file,
                        const std::string& gfx) const;
  // All options except the chip, for cache keys.
  static const std::vector<const char*>& options();

 private:
  gpu::RunTimeCompiler compiler_;
};

}  // namespace prism::hip
