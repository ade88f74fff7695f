// Device queries, translated to DeviceInfo and a few facts for the backend itself.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/opencl_api.h"
#include "runtime/driver.h"

namespace prism::opencl {

struct DeviceFacts {
  DeviceInfo info;
  uint32_t version = 0;         // OpenCL version times ten: 12, 30
  std::string build_options;    // for clBuildProgram
  std::string identity;         // device, driver and platform; part of the key of compiled programs
  uint64_t max_allocation = 0;  // guaranteed size in bytes of one buffer
  bool tells_free_memory = false;
  bool keeps_group_size = false;  // required group sizes work beyond the queried limit
  bool has_command_buffers = false;
  bool command_buffers_overlap = false;  // one may be enqueued again while it runs
};

// 30 for "OpenCL 3.0 ...", 12 for "OpenCL C 1.2 ..."; 0 for other texts.
uint32_t version_of(const std::string& text);

// Whether a space-separated list contains the whole word.
bool has_extension(const std::string& extensions, const std::string& name);

// The subgroup support that a driver reports.
struct SubgroupOffer {
  std::string platform;         // the platform's name
  uint32_t ptx_level = 0;       // NVIDIA's compute capability times ten; 0 for others
  std::vector<uint32_t> sizes;  // sizes that a kernel may require, with shuffles
};
// Enables the reported features that are known to work.
void use_subgroups(const SubgroupOffer& offer, ir::Capabilities& capabilities);

DeviceFacts describe(const Api& api, cl_platform_id platform, cl_device_id device,
                     const std::string& id);

// Free bytes as reported by the driver; 0 if it does not report them.
uint64_t told_free_bytes(const Api& api, cl_device_id device);

}  // namespace prism::opencl
