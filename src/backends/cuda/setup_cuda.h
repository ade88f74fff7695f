// `prism setup cuda`: fetches NVRTC's Python wheel for this driver into the cache folder.
#pragma once

#include <functional>
#include <string>

namespace prism::cuda {

// Does nothing where every card is served already. Throws kNotFound without a driver or without
// pip, kIo when fetching or unpacking fails. A wheel put into the cache folder's `cuda` by hand is
// unpacked instead of fetched.
std::string set_up_cuda(const std::function<void(const std::string&)>& progress);

// The package and the versions that suit a driver and the oldest card it sees (compute capability
// x10).
struct WheelChoice {
  std::string package;   // "nvidia-cuda-nvrtc-cu12"
  std::string versions;  // ">=12,<12.5"
};
WheelChoice wheel_for(int driver_version, int oldest_capability);

}  // namespace prism::cuda
