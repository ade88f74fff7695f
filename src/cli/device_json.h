// Devices and capabilities as JSON.
#pragma once

#include "base/json.h"
#include "runtime/driver.h"

namespace prism::cli {

Json bytes_json(uint64_t bytes);  // null if unknown
Json device_json(DeviceDriver& device, const DeviceInfo& info);

}  // namespace prism::cli
