// Finding every device of the machine and choosing one, with the reasons.
#pragma once

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace prism {

enum class BackendPreference { Auto, Cuda, Rocm, Metal, Vulkan, Sycl, OpenCL, WebGpu, Cpu };

struct BackendReport {
  std::string name;
  std::string label;
  bool available = false;
  std::string reason;
  std::string next_step;
  std::string found;
  std::vector<std::shared_ptr<DeviceDriver>> devices;
};

// Every backend of this build in preference order, each found once per process. PRISM_BACKENDS
// limits it. Starts every driver there is: a device that is named, and the choice of an earlier
// run, are found without it.
const std::vector<BackendReport>& discover_backends();

std::string backend_summary();
void print_backend_summary(std::ostream& out = std::cout);

Device init_backend(BackendPreference preference = BackendPreference::Auto);
Device best_available_backend();
Device init_backend_with_memory_check(BackendPreference preference, uint64_t bytes);

// Why each device that was not chosen was not: id and reason.
struct Rejection {
  std::string id;
  std::string reason;
  bool failed = false;  // its self-check: it would have been taken
};
struct Choice {
  Device device;
  std::vector<Rejection> rejected;
};
// What a device is wanted for: the measurement that decides between devices.
enum class Work { balanced, bandwidth, f32, f16, latency };
// Honours PRISM_DEVICE when spelling is auto. Opens the backend of a device that is named and no
// other; auto opens that of the choice an earlier run made (runtime/remembered_choice.h) and
// rejects nothing then, unless every backend has been looked at already.
Choice choose_device(const std::string& spelling = "auto", Work work = Work::balanced);
// What Auto chooses when nothing on the card of this device may be used. Throws kNotFound.
Device next_best_device(const Device& failed);

// The backend list hands its makers to the registry (src/backends/backends.cpp).
struct BackendMaker {
  const char* name;  // of the backend, without making it: that may try libraries
  std::unique_ptr<Backend> (*make)();
};
std::vector<BackendMaker> backend_makers();  // defined by src/backends/backends.cpp
// Folders other than those of libraries in which drivers announce themselves: a change there may
// mean other devices. Defined beside it.
std::vector<std::string> driver_folders();

}  // namespace prism
