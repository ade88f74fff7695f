// Collects the facts of the machine's fingerprint.
#include "runtime/discovery/device_surroundings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/system/host_memory.h"
#include "base/system/probe_library.h"
#include "base/system/system.h"
#include "runtime/discovery/pci.h"

#ifndef _WIN32
#include <unistd.h>

extern char** environ;
#endif

namespace prism {
namespace {

namespace fs = std::filesystem;

// Directories in which nodes of cards appear once the kernel driver is loaded.
constexpr const char* kNodes[] = {"/dev", "/dev/dri"};
constexpr const char* kLoaderIndex = "/etc/ld.so.cache";

// Parts of the names of environment variables that hide, select or order devices and drivers.
constexpr std::string_view kTellingWords[] = {"DEVICE", "ICD",    "DRIVER", "LIBRARY",
                                              "LAYER",  "PLUGIN", "BACKEND"};

std::string changed(const fs::path& path) {
  std::error_code failed;
  const auto when = fs::last_write_time(path, failed);
  return failed ? "" : fmt::format("{} {}\n", path.string(), when.time_since_epoch().count());
}

std::string user_text() {
  std::string text;
#ifndef _WIN32
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(0, count)));
  text = fmt::format("user {}", getuid());
  for (const gid_t group : groups) text += fmt::format(" {}", group);
#endif
  return text + "\n";
}

// Facts without which drivers that work elsewhere fail: the limit of the address space, and the
// kernel's description of the processor.
std::string process_text() {
  std::error_code ignored;
  std::string text = fs::exists("/sys/devices/system", ignored) ? "" : "no /sys\n";
  if (const auto bytes = address_space_limit()) text += fmt::format("address space {}\n", *bytes);
  return text;
}

std::string variables_text() {
  std::vector<std::string> lines;
#ifndef _WIN32
  for (char** each = environ; each && *each; ++each) {
    const std::string_view variable = *each;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (std::ranges::any_of(kTellingWords, [&](std::string_view word) {
          return name.find(word) != std::string_view::npos;
        }))
      lines.emplace_back(variable);
  }
#endif
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::string device_surroundings(const std::vector<std::string>& driver_folders) {
  std::error_code ignored;
  std::string text = system_description() + "\n";
  text += changed(fs::read_symlink("/proc/self/exe", ignored));
  for (const PciCard& card : pci_cards())
    text += fmt::format("{} {:04x}:{:04x} {}\n", card.address, card.vendor, card.device,
                        card.kernel_driver);
  for (const fs::path& folder : loader_folders()) text += changed(folder);
  for (const std::string& folder : driver_folders) text += changed(folder);
  for (const char* folder : kNodes) text += changed(folder);
  text += changed(kLoaderIndex);
  return text + process_text() + user_text() + variables_text();
}

bool surroundings_show_cards() {
#ifdef __linux__
  return true;
#else
  return false;
#endif
}

}  // namespace prism
