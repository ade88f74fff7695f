// Finds every device of every platform, or reports why there are none.
#include "backends/opencl/opencl_backend.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "backends/opencl/opencl_device.h"
#include "runtime/discovery/device_node.h"
#include "runtime/discovery/driver_start.h"

namespace prism {
namespace {

using namespace opencl;

constexpr uint32_t kOldest = 12;  // OpenCL 1.2

constexpr const char* kInstallLoader =
    "install the OpenCL loader (Debian, Ubuntu: apt install ocl-icd-libopencl1; Fedora, Arch: "
    "ocl-icd)";
constexpr const char* kInstallDriver =
    "install the OpenCL driver of your GPU (docs/backends.md), or pocl-opencl-icd to run on the "
    "CPU";

struct Candidate {
  cl_platform_id platform;
  cl_device_id device;
  int rank;  // GPUs first, then accelerators, then CPUs
};

int rank_of(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return 0;
  return type & CL_DEVICE_TYPE_ACCELERATOR ? 1 : 2;
}

std::vector<cl_platform_id> platforms_of(const Api& api) {
  cl_uint count = 0;
  if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> platforms(count);
  if (api.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
  return platforms;
}

std::vector<cl_device_id> devices_of(const Api& api, cl_platform_id platform) {
  // Custom devices cannot compile kernels.
  constexpr cl_device_type kTypes =
      CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU;
  cl_uint count = 0;
  if (api.clGetDeviceIDs(platform, kTypes, 0, nullptr, &count) != CL_SUCCESS || count == 0)
    return {};
  std::vector<cl_device_id> devices(count);
  if (api.clGetDeviceIDs(platform, kTypes, count, devices.data(), nullptr) != CL_SUCCESS) return {};
  return devices;
}

// Why a device cannot be used; empty if it can.
std::string objection(const Api& api, cl_device_id device) {
  const std::string name = device_text(api, device, CL_DEVICE_NAME);
  const std::string version = device_text(api, device, CL_DEVICE_VERSION);
  if (version_of(version) < kOldest)
    return fmt::format("{} has {}, and 1.2 is needed", name,
                       version.empty() ? "no version" : version);
  if (!device_number<cl_bool>(api, device, CL_DEVICE_AVAILABLE, CL_TRUE))
    return name + " is not available";
  if (!device_number<cl_bool>(api, device, CL_DEVICE_COMPILER_AVAILABLE, CL_TRUE))
    return name + " has no compiler";
  if (!device_number<cl_bool>(api, device, CL_DEVICE_ENDIAN_LITTLE, CL_TRUE))
    return name + " is big-endian";
  return "";
}

std::string vendors_folder() {
  const char* folder = std::getenv("OCL_ICD_VENDORS");
  return folder && *folder ? folder : "/etc/OpenCL/vendors";
}

std::vector<std::string> gpu_nodes() {
  std::vector<std::string> nodes = {"/dev/kfd"};
  // Linux numbers render nodes from 128, one per card.
  for (int card = 0; card < 16; ++card)
    nodes.push_back(fmt::format("/dev/dri/renderD{}", 128 + card));
  return nodes;
}

void append(std::string& text, const std::string& more) {
  if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
}

class OpenClBackend final : public Backend {
 public:
  std::string name() const override { return "opencl"; }
  std::string label() const override { return "OpenCL"; }

  Discovery discover() override {
    const std::scoped_lock lock(driver_start_mutex());
    Discovery found;
    const std::shared_ptr<const Api> api = load_api(&found.reason);
    if (!api) {
      found.next_step = kInstallLoader;
      return found;
    }
    found.found = api->library;
    const std::vector<cl_platform_id> platforms = platforms_of(*api);
    std::vector<Candidate> candidates;
    for (cl_platform_id platform : platforms) {
      found.found += fmt::format(", {} ({})", platform_text(*api, platform, CL_PLATFORM_NAME),
                                 platform_text(*api, platform, CL_PLATFORM_VERSION));
      for (cl_device_id device : devices_of(*api, platform)) {
        const std::string against = objection(*api, device);
        append(found.reason, against);
        if (against.empty())
          candidates.push_back(
              {platform, device,
               rank_of(device_number<cl_device_type>(*api, device, CL_DEVICE_TYPE, 0))});
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    for (const Candidate& candidate : candidates) {
      const std::string id = fmt::format("opencl:{}", found.devices.size());
      found.devices.push_back(std::make_shared<opencl::Device>(
          api, candidate.platform, candidate.device,
          describe(*api, candidate.platform, candidate.device, id)));
    }
    explain(found, platforms.empty(), candidates.empty() || candidates.front().rank != 0);
    return found;
  }

 private:
  static void explain(Discovery& found, bool no_platform, bool no_gpu) {
    if (no_platform) {
      append(found.reason,
             fmt::format("{} found no driver (no .icd file in {} names a library that opens)",
                         found.found, vendors_folder()));
      found.next_step = kInstallDriver;
    } else if (found.devices.empty()) {
      append(found.reason, "the installed drivers report no device");
      found.next_step = kInstallDriver;
    }
    if (!no_gpu) return;
    // A driver does not list a GPU whose node this user may not open.
    if (const auto denied = find_denied_node(gpu_nodes())) {
      append(found.reason, denied->reason);
      found.next_step = denied->next_step;
    }
  }
};

}  // namespace

std::unique_ptr<Backend> make_opencl_backend() { return std::make_unique<OpenClBackend>(); }

}  // namespace prism
