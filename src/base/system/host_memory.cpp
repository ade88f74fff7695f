// /proc/meminfo and control groups on Linux, Mach on macOS, GlobalMemoryStatusEx on Windows.
#include "base/system/host_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#elif defined(__APPLE__)
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif
#ifndef _WIN32
#include <unistd.h>
#endif

namespace prism {
namespace {

#if !defined(_WIN32) && !defined(__APPLE__)
uint64_t number_in(const char* path) {
  std::ifstream in(path);
  uint64_t number = 0;
  return in >> number ? number : 0;
}

// In a container /proc/meminfo shows the machine's memory, but the container's limit applies.
void apply_limit(HostMemory& memory, uint64_t limit, uint64_t used) {
  if (limit == 0 || limit >= memory.total_bytes) return;
  memory.total_bytes = limit;
  memory.available_bytes = std::min(memory.available_bytes, limit > used ? limit - used : 0);
}
#endif

}  // namespace

HostMemory host_memory() {
  HostMemory memory;
#if defined(_WIN32)
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof(status);
  if (GlobalMemoryStatusEx(&status)) memory = {status.ullTotalPhys, status.ullAvailPhys};
#elif defined(__APPLE__)
  size_t size = sizeof(memory.total_bytes);
  sysctlbyname("hw.memsize", &memory.total_bytes, &size, nullptr, 0);
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages),
                        &count) == KERN_SUCCESS)
    memory.available_bytes =
        (uint64_t{pages.free_count} + pages.inactive_count + pages.purgeable_count) *
        uint64_t{vm_kernel_page_size};
#else
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  uint64_t kib = 0;
  while (in >> name >> kib && std::getline(in, unit)) {
    if (name == "MemTotal:") memory.total_bytes = kib * 1024;
    if (name == "MemAvailable:") memory.available_bytes = kib * 1024;
  }
  apply_limit(memory, number_in("/sys/fs/cgroup/memory.max"),
              number_in("/sys/fs/cgroup/memory.current"));
  apply_limit(memory, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
              number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes"));
#endif
  return memory;
}

uint64_t page_bytes() {
#ifdef _WIN32
  SYSTEM_INFO system{};
  GetSystemInfo(&system);
  return system.dwPageSize;
#else
  return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#endif
}

}  // namespace prism
