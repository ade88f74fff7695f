// How devices and capabilities look in JSON.
#pragma once

#include "cli/json.h"
#include "runtime/driver.h"

namespace prism::cli {

Json bytes_json(uint64_t bytes);  // null where it is not known
Json device_json(DeviceDriver& device, const DeviceInfo& info);

}  // namespace prism::cli
