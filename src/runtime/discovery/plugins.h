// Loading of backends from the shared libraries in a folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// Loads every shared library of the folder in name order. Its backend replaces the one of the same
// name, or is inserted before the CPU backend. Each library is probed in a child process first; one
// that crashes or is no plug-in is listed under its file name with the reason. Does nothing for an
// empty folder name; throws kNotFound for a missing folder.
void add_plugins(std::vector<std::unique_ptr<Backend>>& backends, const std::string& folder);

// Loads one plug-in, which stays open. Returns null and sets *reason if the file is no plug-in.
std::unique_ptr<Backend> open_plugin(const std::string& file, std::string* reason);

}  // namespace prism
