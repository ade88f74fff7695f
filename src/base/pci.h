// Cards on the PCI bus, for interfaces that tell a card's kind but not its place.
#pragma once

#include <cstdint>
#include <string>

namespace prism {

// The address ("0000:65:00.0") of the one card of this kind; empty when there is none, when there
// are several (which one is meant cannot be known), and where the system does not show the bus.
std::string find_pci_device(uint32_t vendor, uint32_t device);

}  // namespace prism
