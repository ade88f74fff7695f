// Cards on the PCI bus, for interfaces that tell a card's kind but not its place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace prism {

// The address ("0000:65:00.0") of the one card of this kind; empty when there is none, when there
// are several (which one is meant cannot be known), and where the system does not show the bus.
std::string find_pci_device(uint32_t vendor, uint32_t device);

struct PciCard {
  std::string address;
  uint32_t vendor = 0, device = 0;
  std::string kernel_driver;  // that the system has bound to it; empty when none
};

// Display controllers and processing accelerators, by address. Empty where the system does not show
// the bus.
std::vector<PciCard> pci_cards(const std::filesystem::path& bus = "/sys/bus/pci/devices");

}  // namespace prism
