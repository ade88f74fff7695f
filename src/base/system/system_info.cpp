// /proc/cpuinfo, affinity and control groups on Linux, sysctl on macOS, the environment on Windows.
#include "base/system/system_info.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace prism {
namespace {

#if defined(__linux__)
std::string value_after_colon(const std::string& line) {
  const size_t colon = line.find(':');
  const size_t start =
      colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
  return start == std::string::npos ? "" : line.substr(start);
}

void read_name(ProcessorInfo& info) {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line) && (info.name.empty() || info.vendor.empty())) {
    if (info.name.empty() && line.starts_with("model name")) info.name = value_after_colon(line);
    if (info.vendor.empty() && line.starts_with("vendor_id")) info.vendor = value_after_colon(line);
  }
}

uint32_t affinity_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 0;
}

// A container's CPU quota in whole processors, rounded up; 0 for none.
uint32_t quota_threads() {
  double quota = 0, period = 0;
  std::ifstream unified("/sys/fs/cgroup/cpu.max");
  if (!(unified >> quota >> period)) {  // "max 100000" does not parse as a number
    std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
        period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (!(quota_file >> quota) || !(period_file >> period)) return 0;
  }
  return quota > 0 && period > 0 ? static_cast<uint32_t>((quota + period - 1) / period) : 0;
}
#endif

}  // namespace

ProcessorInfo processor_info() {
  ProcessorInfo info;
  info.threads = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  read_name(info);
  for (uint32_t limit : {affinity_threads(), quota_threads()})
    if (limit > 0) info.threads = std::min(info.threads, limit);
#elif defined(__APPLE__)
  char text[256] = {};
  size_t size = sizeof(text) - 1;
  if (sysctlbyname("machdep.cpu.brand_string", text, &size, nullptr, 0) == 0) info.name = text;
  info.vendor = "Apple";
#elif defined(_WIN32)
  if (const char* name = std::getenv("PROCESSOR_IDENTIFIER")) info.name = name;
#endif
  if (info.name.empty()) info.name = "CPU";
  return info;
}

}  // namespace prism
