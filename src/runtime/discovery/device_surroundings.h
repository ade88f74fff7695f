// A fingerprint of the machine that detects changed devices without starting a driver.
#pragma once

#include <string>
#include <vector>

namespace prism {

// One line per fact: the system, this program's file, the PCI cards with their kernel drivers, the
// modification times of library folders and of these additional folders, device nodes, the limit of
// the address space, the user's groups, and the environment variables that drivers read. Equal
// texts mean the same devices, as far as files can show. Takes about a millisecond.
std::string device_surroundings(const std::vector<std::string>& driver_folders);

// Whether the text above lists cards. Only Linux does, so elsewhere a new card goes unnoticed.
bool surroundings_show_cards();

}  // namespace prism
