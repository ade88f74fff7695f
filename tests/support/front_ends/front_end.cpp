// Reads the variables of build/devices.env.
#include "support/front_ends/front_end.h"

#include <cstdlib>
#include <stdexcept>

namespace prism::test {

std::optional<std::string> front_end(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string require_front_end(const std::string& variable) {
  if (auto value = front_end(variable)) return *value;
  throw std::runtime_error(
      variable +
      " is not set; run make test-devices, or scripts/setup_devices.sh and read "
      "build/devices.env");
}

}  // namespace prism::test
