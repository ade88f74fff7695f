// Downloads the components that a backend needs beyond its driver (`prism setup NAME`).
#pragma once

#include <functional>
#include <string>

namespace prism {

// Sets up the named backend; see Backend::set_up. Throws kNotFound for an unknown name, listing the
// known ones.
std::string set_up_backend(const std::string& name,
                           const std::function<void(const std::string&)>& progress);

}  // namespace prism
