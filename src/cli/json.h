// How devices and capabilities look in JSON; for .cpp files of the program only.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/driver.h"

namespace prism::cli {

nlohmann::ordered_json bytes_json(uint64_t bytes);  // null where it is not known
nlohmann::ordered_json device_json(DeviceDriver& device, const DeviceInfo& info);

}  // namespace prism::cli
