// Backends that are shared libraries in a folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// Opens every shared library of the folder, in the order of their names, and takes its backend: in
// place of the one of that name, else before the CPU's. Each is tried in a child process first; one
// that is no plug-in, or crashes, is listed under its file's name with the reason. Nothing for an
// empty folder name; throws kNotFound for a folder that is not there.
void add_plugins(std::vector<std::unique_ptr<Backend>>& backends, const std::string& folder);

// The backend of one such library, which stays open; null with *reason when the file is none.
std::unique_ptr<Backend> open_plugin(const std::string& file, std::string* reason);

}  // namespace prism
