// `prism setup cuda`: downloads the NVRTC Python wheel for this driver into the cache folder.
#pragma once

#include <functional>
#include <string>

namespace prism::cuda {

// Does nothing if every card already has a compiler. Throws kNotFound without a driver or pip, and
// kIo if downloading or unpacking fails. A wheel placed in the cache folder's `cuda` subfolder is
// unpacked instead of downloaded.
std::string set_up_cuda(const std::function<void(const std::string&)>& progress);

// The package and versions that suit a driver and its oldest card (compute capability x10).
struct WheelChoice {
  std::string package;   // "nvidia-cuda-nvrtc-cu12"
  std::string versions;  // ">=12,<12.5"
};
WheelChoice wheel_for(int driver_version, int oldest_capability);

}  // namespace prism::cuda
