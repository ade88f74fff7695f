// Cards on the PCI bus, for interfaces that report a card's model but not its address.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace prism {

// The address ("0000:65:00.0") of the only card with these ids. Empty if there is none, if there
// are several, or if the system does not expose the bus.
std::string find_pci_device(uint32_t vendor, uint32_t device);

struct PciCard {
  std::string address;
  uint32_t vendor = 0, device = 0;
  std::string kernel_driver;  // the driver bound to the card; empty if none
};

// Display controllers and processing accelerators, by address. Empty if the system does not expose
// the bus.
std::vector<PciCard> pci_cards(const std::filesystem::path& bus = "/sys/bus/pci/devices");

}  // namespace prism
