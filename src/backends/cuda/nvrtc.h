// NVRTC, NVIDIA's run-time compiler: CUDA text to a binary for one architecture.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_runtime/gpu_device.h"
#include "base/dynamic_library.h"

namespace prism::cuda {

// What to ask of the compiler for one device: "sm_90" gives a cubin, "compute_90" PTX that the
// driver finishes.
struct Target {
  std::string architecture;
  bool cubin = true;
};

class Nvrtc {
 public:
  // Null when the library lacks what is needed (before 11.2).
  static std::shared_ptr<Nvrtc> from(DynamicLibrary library);

  int version() const { return version_; }  // as the driver's: 12090 is 12.9
  const std::string& library() const { return library_.name(); }
  // Compute capabilities x10, ascending.
  const std::vector<int>& architectures() const { return architectures_; }

  // How to compile for a device of that compute capability (x10) under a driver of that version.
  // False with the reason when it cannot be done.
  bool target_for(int capability, int driver_version, Target* target, std::string* reason) const;

  gpu::Compiled compile(const std::string& text, const std::string& file,
                        const Target& target) const;
  // The options besides the architecture, for cache keys.
  static const std::vector<const char*>& options();

 private:
  using Program = struct ProgramTag*;
  bool bind();

  DynamicLibrary library_;
  int version_ = 0;
  std::vector<int> architectures_;
  int (*version_of_)(int*, int*) = nullptr;
  int (*architecture_count_)(int*) = nullptr;
  int (*architecture_list_)(int*) = nullptr;
  const char* (*error_text_)(int) = nullptr;
  int (*create_)(Program*, const char* text, const char* name, int, const char* const*,
                 const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*ptx_size_)(Program, size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
  int (*cubin_size_)(Program, size_t*) = nullptr;
  int (*cubin_)(Program, char*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
};

}  // namespace prism::cuda
