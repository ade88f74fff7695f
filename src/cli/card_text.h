// The text of `prism devices` about a card and the ways (backends) to use it.
#pragma once

#include <optional>
#include <string>

#include "runtime/discovery/cards.h"
#include "runtime/measure/calibrate.h"

namespace prism::cli {

// Returns the stored calibration. For the CPU it prefers the figures of the native kernels, because
// they run the tensor ops.
std::optional<Calibration> measured_figures(const DeviceInfo& info);

// Returns the card's name, place and memory, followed by the measured figures, driver and
// capabilities of each way. chosen: the id of the device that would be used.
std::string card_text(const Card& card, const std::string& chosen, bool verbose);

}  // namespace prism::cli
