// NVRTC's functions and the choice of the target architecture.
#include "backends/cuda/nvrtc.h"

#include <algorithm>

#include <fmt/format.h>

#include "backends/gpu_runtime/gpu_api.h"

namespace prism::cuda {

std::shared_ptr<Nvrtc> Nvrtc::from(DynamicLibrary library) {
  auto nvrtc = std::make_shared<Nvrtc>();
  if (!nvrtc->compiler_.open(std::move(library), "nvrtc")) return nullptr;
  FunctionTable get(nvrtc->compiler_.library());
  int (*architecture_count)(int*) = nullptr;
  int (*architecture_list)(int*) = nullptr;
  void* cubin = nullptr;
  get(architecture_count, "nvrtcGetNumSupportedArchs");
  get(architecture_list, "nvrtcGetSupportedArchs");
  get(cubin, "nvrtcGetCUBIN");
  int count = 0;
  if (!get.missing().empty() || architecture_count(&count) != 0 || count <= 0) return nullptr;
  nvrtc->architectures_.resize(static_cast<size_t>(count));
  if (architecture_list(nvrtc->architectures_.data()) != 0) return nullptr;
  std::sort(nvrtc->architectures_.begin(), nvrtc->architectures_.end());
  return nvrtc;
}

bool Nvrtc::target_for(int capability, int driver_version, Target* target,
                       std::string* reason) const {
  const auto name = [](int x10) { return fmt::format("{}.{}", x10 / 10, x10 % 10); };
  const std::string numbers = compiler_.version_text();
  if (std::binary_search(architectures_.begin(), architectures_.end(), capability)) {
    *target = {fmt::format("sm_{}", capability), true};
    // A cubin runs on every driver of its generation (11.x, 12.x, 13.x) and on newer ones.
    if (version() / 1000 <= driver_version / 1000) return true;
    *reason = fmt::format("NVRTC {} is newer than the driver (CUDA {}.{})", numbers,
                          driver_version / 1000, driver_version % 1000 / 10);
    return false;
  }
  const auto above = std::upper_bound(architectures_.begin(), architectures_.end(), capability);
  if (above == architectures_.begin()) {
    *reason = fmt::format("NVRTC {} compiles for compute capability {} and newer, this card has {}",
                          numbers, name(architectures_.front()), name(capability));
    return false;
  }
  const int nearest = *(above - 1);
  if (version() <= driver_version) {
    *target = {fmt::format("compute_{}", nearest), false};
    return true;
  }
  // The driver cannot read newer PTX, but it runs a cubin for a lower minor version of the same
  // generation.
  if (nearest / 10 == capability / 10 && version() / 1000 <= driver_version / 1000) {
    *target = {fmt::format("sm_{}", nearest), true};
    return true;
  }
  *reason = fmt::format(
      "NVRTC {} does not know compute capability {}, and the driver (CUDA {}.{}) cannot read its "
      "PTX",
      numbers, name(capability), driver_version / 1000, driver_version % 1000 / 10);
  return false;
}

const std::vector<const char*>& Nvrtc::options() {
  // The kernel language rounds each operation once and keeps subnormals. Printed text uses no C++
  // library.
  static const std::vector<const char*> options = {"--std=c++17", "--fmad=false", "--prec-div=true",
                                                   "--prec-sqrt=true", "--ftz=false"};
  return options;
}

gpu::Compiled Nvrtc::compile(const std::string& text, const std::string& file,
                             const Target& target) const {
  const std::string architecture = "--gpu-architecture=" + target.architecture;
  std::vector<const char*> words = options();
  words.push_back(architecture.c_str());
  return compiler_.compile(text, file, words, target.cubin ? "CUBIN" : "PTX");
}

}  // namespace prism::cuda
