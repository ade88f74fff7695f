// The version of Prism, for the APIs that report one.
#pragma once

#include <string>

namespace prism::server {

std::string version();  // "0.2.0"

}  // namespace prism::server
