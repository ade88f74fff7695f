// NVRTC, NVIDIA's run-time compiler: compiles CUDA text to a binary for one architecture.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_runtime/gpu_rtc.h"
#include "base/system/dynamic_library.h"

namespace prism::cuda {

// The compile target for one device: "sm_90" yields a cubin, "compute_90" yields PTX that the
// driver finishes.
struct Target {
  std::string architecture;
  bool cubin = true;
};

class Nvrtc {
 public:
  // Null if the library lacks a required function (before 11.2).
  static std::shared_ptr<Nvrtc> from(DynamicLibrary library);

  int version() const {  // in the driver's format: 12090 is 12.9
    return compiler_.major() * 1000 + compiler_.minor() * 10;
  }
  const std::string& library() const { return compiler_.library().name(); }
  // Compute capabilities x10, ascending.
  const std::vector<int>& architectures() const { return architectures_; }

  // The target for this compute capability (x10) under this driver version. Returns false and sets
  // *reason if there is none.
  bool target_for(int capability, int driver_version, Target* target, std::string* reason) const;

  gpu::Compiled compile(const std::string& text, const std::string& file,
                        const Target& target) const;
  // All options except the architecture, for cache keys.
  static const std::vector<const char*>& options();

 private:
  gpu::RunTimeCompiler compiler_;
  std::vector<int> architectures_;
};

}  // namespace prism::cuda
