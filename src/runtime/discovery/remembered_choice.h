// The device that Auto chose in an earlier run, so that the next run starts only that driver.
//
// A choice is keyed by the fingerprint of the machine (runtime/discovery/device_surroundings.h): a
// new card, another driver or changed variables invalidate it, and every backend is searched again.
// So do a calibration, `prism setup`, and the age of a week, because files do not show everything;
// the limit is an hour if the CPU was chosen on a machine with a card that no backend could use.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism {

struct RememberedChoice {
  std::string id, backend, name, card, driver;  // of the device; all must still match
  std::string why;
};

// The valid choice for this work on this machine, if any.
std::optional<RememberedChoice> remembered_choice(const std::string& surroundings, Work work);
void remember_choice(const std::string& surroundings, Work work, const Device& chosen,
                     std::chrono::seconds valid);
void forget_choices();

// How long a choice stays valid; 0: not at all. has_cards: whether the machine has any cards;
// nullopt if unknown.
std::chrono::seconds choice_validity(const DeviceInfo& chosen, std::optional<bool> has_cards);

// The reported device that still matches the remembered one, with "remembered: " before its reason;
// nullopt if there is none.
std::optional<Device> still_there(const RememberedChoice& choice,
                                  const std::vector<BackendReport>& reports);

}  // namespace prism
