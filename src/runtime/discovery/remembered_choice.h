// The device that Auto chose in an earlier run, so that the next one starts that driver alone.
//
// A choice is kept under the surroundings it was made in (runtime/discovery/device_surroundings.h):
// with a new card, another driver or other variables nothing is remembered, and every backend is
// looked at again. So it is after a calibration, after `prism setup`, and after a week, for what
// files do not tell; after an hour where the CPU was chosen beside a card that no backend could
// use.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

struct RememberedChoice {
  std::string id, backend, name, card, driver;  // of the device, all of which must still hold
  std::string why;
};

// The choice for this work in these surroundings, while it is valid.
std::optional<RememberedChoice> remembered_choice(const std::string& surroundings, Work work);
void remember_choice(const std::string& surroundings, Work work, const Device& chosen,
                     std::chrono::seconds valid);
void forget_choices();

// How long a choice may be taken for granted; 0: not at all. has_cards: whether the machine shows
// any; nothing where that cannot be seen.
std::chrono::seconds choice_validity(const DeviceInfo& chosen, std::optional<bool> has_cards);

// The device of these reports that is still what was remembered, with "remembered: " and why it was
// chosen; nothing when there is none.
std::optional<Device> still_there(const RememberedChoice& choice,
                                  const std::vector<BackendReport>& reports);

}  // namespace prism
