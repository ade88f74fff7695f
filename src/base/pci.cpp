#include "base/pci.h"

#include <filesystem>
#include <fstream>

namespace prism {
namespace {

uint32_t number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  uint32_t value = 0;
  in >> std::hex >> value;
  return in ? value : 0;
}

}  // namespace

std::string find_pci_device(uint32_t vendor, uint32_t device) {
  if (vendor == 0 || device == 0) return "";
  std::string found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/devices", ignored)) {
    if (number_in(entry.path() / "vendor") != vendor ||
        number_in(entry.path() / "device") != device)
      continue;
    if (!found.empty()) return "";
    found = entry.path().filename().string();
  }
  return found;
}

}  // namespace prism
