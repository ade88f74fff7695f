// Fetching what a backend needs beyond its driver (`prism setup NAME`).
#pragma once

#include <functional>
#include <string>

namespace prism {

// Sets up the backend of that name; see Backend::set_up. Throws kNotFound listing the names for an
// unknown one.
std::string set_up_backend(const std::string& name,
                           const std::function<void(const std::string&)>& progress);

}  // namespace prism
