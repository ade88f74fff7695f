// Which devices are one card: the same processor reached through several backends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

// One processor and the ways to it.
struct Card {
  std::string name;           // as the first of its devices calls it
  std::string address;        // "0000:65:00.0" or "uuid:..."; empty where no backend tells
  bool is_processor = false;  // the host's own: native, or by a driver that runs on its cores
  std::vector<std::shared_ptr<DeviceDriver>> ways;  // in the order of the reports
};

// Every device of the reports on one card each, the host's processor last. Devices are one card
// when they have the same address; one that has none belongs to the only card of its name, where it
// is the only one of that name in its backend. Two without address in one backend are never one.
std::vector<Card> group_by_card(const std::vector<BackendReport>& reports);

}  // namespace prism
