// What tells, without starting a driver, that the devices of this machine may be others than
// before.
#pragma once

#include <string>
#include <vector>

namespace prism {

// One line a fact: the system, this program's file, the cards on the PCI bus with the kernel's
// driver of each, the folders of libraries and these further ones with their times of change,
// device nodes, the user's groups, and the variables that drivers listen to. Two equal texts: the
// same devices, as far as files can tell. Takes about a millisecond.
std::string device_surroundings(const std::vector<std::string>& driver_folders);

// Whether the text above lists cards: elsewhere than on Linux a new one does not show in it.
bool surroundings_show_cards();

}  // namespace prism
