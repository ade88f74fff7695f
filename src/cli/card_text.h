// A card and the ways to it, for `prism devices`.
#pragma once

#include <optional>
#include <string>

#include "runtime/discovery/cards.h"
#include "runtime/measure/calibrate.h"

namespace prism::cli {

// What an earlier calibration gave; of the CPU what its native kernels reach, where that is known,
// since they do the work of tensors.
std::optional<Calibration> measured_figures(const DeviceInfo& info);

// The card's name, place and memory; under it each way with what was measured of it, its driver and
// what it can do. chosen: the id of the device that would be used.
std::string card_text(const Card& card, const std::string& chosen, bool verbose);

}  // namespace prism::cli
