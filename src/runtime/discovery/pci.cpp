// Reads the PCI bus from sysfs.
#include "runtime/discovery/pci.h"

#include <algorithm>
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

std::vector<PciCard> pci_cards(const std::filesystem::path& bus) {
  constexpr uint32_t kDisplay = 0x03, kAccelerator = 0x12;  // PCI class codes
  std::vector<PciCard> cards;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(bus, ignored)) {
    const uint32_t kind = number_in(entry.path() / "class") >> 16;
    if (kind != kDisplay && kind != kAccelerator) continue;
    const auto driver = std::filesystem::read_symlink(entry.path() / "driver", ignored);
    cards.push_back({entry.path().filename().string(), number_in(entry.path() / "vendor"),
                     number_in(entry.path() / "device"), driver.filename().string()});
  }
  std::ranges::sort(cards, {}, &PciCard::address);
  return cards;
}

}  // namespace prism
