// /proc/meminfo and control groups on Linux, Mach on macOS, GlobalMemoryStatusEx on Windows.
#include "base/system/host_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#elif defined(__APPLE__)
#include <mach/mach.h>
#include <sys/sysctl.h>
#else
#include <sys/sysinfo.h>
#endif
#ifndef _WIN32
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace prism {
namespace {

#if !defined(_WIN32) && !defined(__APPLE__)
uint64_t number_in(const std::filesystem::path& path) {
  std::ifstream in(path);
  uint64_t number = 0;
  return in >> number ? number : 0;
}

// Returns the value of a name from lines of "name value".
uint64_t named_number(const std::filesystem::path& path, std::string_view wanted) {
  std::ifstream in(path);
  std::string name, rest;
  uint64_t number = 0;
  while (in >> name >> number) {
    if (name == wanted) return number;
    std::getline(in, rest);
  }
  return 0;
}

void apply_limit(HostMemory& memory, uint64_t limit, uint64_t used) {
  if (limit == 0) return;
  memory.total_bytes = std::min(memory.total_bytes, limit);
  memory.available_bytes = std::min(memory.available_bytes, limit > used ? limit - used : 0);
}

// The limits of a control group and its parents. File names differ between versions 1 and 2.
struct GroupFiles {
  const char *limit, *used, *reclaimable;
};
void apply_group(HostMemory& memory, const std::filesystem::path& mount, std::string path,
                 const GroupFiles& files) {
  while (true) {
    const std::filesystem::path group = mount.string() + path;
    const uint64_t used = number_in(group / files.used);
    const uint64_t cached = named_number(group / "memory.stat", files.reclaimable);
    apply_limit(memory, number_in(group / files.limit), used - std::min(used, cached));
    if (path.empty()) return;
    path.resize(path.find_last_of('/'));
  }
}

// /proc/self/cgroup has lines of "number:controllers:path"; version 2 names no controllers.
void apply_groups(HostMemory& memory, const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  std::string unified, legacy, line;
  std::ifstream in(root / "proc/self/cgroup");
  while (std::getline(in, line)) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    while (path.ends_with('/')) path.pop_back();
    if (controllers == ",,") unified = path;
    if (controllers.find(",memory,") != std::string::npos) legacy = path;
  }
  apply_group(memory, mount, unified, {"memory.max", "memory.current", "inactive_file"});
  apply_group(memory, mount / "memory", legacy,
              {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"});
}
#endif

}  // namespace

#if !defined(_WIN32) && !defined(__APPLE__)
HostMemory linux_memory(const std::filesystem::path& root) {
  HostMemory memory{named_number(root / "proc/meminfo", "MemTotal:") * 1024,
                    named_number(root / "proc/meminfo", "MemAvailable:") * 1024};
  struct sysinfo system {};
  if (memory.total_bytes == 0 && sysinfo(&system) == 0) {  // no /proc
    memory.total_bytes = uint64_t{system.totalram} * system.mem_unit;
    memory.available_bytes = (uint64_t{system.freeram} + system.bufferram) * system.mem_unit;
  }
  apply_groups(memory, root);
  return memory;
}
#endif

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
  memory = linux_memory("/");
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

std::optional<uint64_t> address_space_limit() {
#ifndef _WIN32
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return limit.rlim_cur;
#endif
  return std::nullopt;
}

}  // namespace prism
