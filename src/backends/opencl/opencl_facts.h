// What a device says of itself, as Prism's DeviceInfo and the few facts the backend needs beside
// it.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/opencl_api.h"
#include "runtime/driver.h"

namespace prism::opencl {

struct DeviceFacts {
  DeviceInfo info;
  uint32_t version = 0;           // of the interface, times ten: 12, 30
  std::string build_options;      // for clBuildProgram
  std::string identity;           // device, driver and platform: what a compiled program depends on
  uint64_t offset_alignment = 1;  // bytes; where a binding may start inside a buffer
  uint64_t max_allocation = 0;    // bytes the driver promises for one buffer
  bool tells_free_memory = false;
  bool keeps_group_size = false;  // a kernel can have the size it requires, whatever is answered
  bool has_command_buffers = false;
  bool command_buffers_overlap = false;  // one may be enqueued again while it still runs
};

// "OpenCL 3.0 ..." and "OpenCL C 1.2 ..." to 30 and 12; 0 for other texts.
uint32_t version_of(const std::string& text);

// Does a list separated by spaces hold the whole word?
bool has_extension(const std::string& extensions, const std::string& name);

// What a driver offers of subgroups.
struct SubgroupOffer {
  std::string platform;         // its name
  uint32_t ptx_level = 0;       // NVIDIA's compute capability times ten; 0 for others
  std::vector<uint32_t> sizes;  // a kernel may ask for one of them, and its lanes shuffle
};
// Takes of the offer what is known to work.
void use_subgroups(const SubgroupOffer& offer, ir::Capabilities& capabilities);

DeviceFacts describe(const Api& api, cl_platform_id platform, cl_device_id device,
                     const std::string& id);

// Bytes the driver says are free; 0 where it does not tell.
uint64_t told_free_bytes(const Api& api, cl_device_id device);

}  // namespace prism::opencl
