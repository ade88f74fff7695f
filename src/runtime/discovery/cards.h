// Grouping of devices by card: one processor may be reached through several backends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

// One processor and the devices through which it is reached.
struct Card {
  std::string name;           // the name reported by its first device
  std::string address;        // "0000:65:00.0" or "uuid:..."; empty if no backend reports it
  bool is_processor = false;  // the host processor, native or through a software driver
  std::vector<std::shared_ptr<DeviceDriver>> ways;  // in report order
};

// Assigns every reported device to one card; the host processor comes last. Devices with the same
// address share a card. A device without an address joins the card of the same name if there is
// exactly one and the name is unique in its backend. Two devices of one backend without addresses
// never share a card.
std::vector<Card> group_by_card(const std::vector<BackendReport>& reports);

}  // namespace prism
