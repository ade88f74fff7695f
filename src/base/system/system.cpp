// uname and /etc/os-release on POSIX systems, GetNativeSystemInfo on Windows.
#include "base/system/system.h"

#include <fstream>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/utsname.h>
#endif

namespace prism {

std::string system_description() {
#ifdef _WIN32
  SYSTEM_INFO info{};
  GetNativeSystemInfo(&info);
  return info.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_ARM64 ? "Windows arm64"
                                                                     : "Windows x86_64";
#else
  std::string text;
  std::ifstream release("/etc/os-release");
  const std::string wanted = "PRETTY_NAME=";
  for (std::string line; std::getline(release, line);) {
    if (!line.starts_with(wanted)) continue;
    text = line.substr(wanted.size());
    std::erase(text, '"');
    text += ", ";
  }
  utsname names{};
  if (uname(&names) != 0) return text + "unknown";
  return text + names.sysname + " " + names.release + " " + names.machine;
#endif
}

}  // namespace prism
