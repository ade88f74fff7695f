// Per-device records kept between runs in the cache folder, as small files of "name value" lines.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/driver.h"

namespace prism {

using DeviceRecord = std::map<std::string, std::string>;  // no newlines in names or values

// kind: "self-check", "calibration". A record is valid only for this device, this driver and the
// same extra key.
std::optional<DeviceRecord> read_device_record(const std::string& kind, const DeviceInfo& info,
                                               const std::string& extra = "");
bool write_device_record(const std::string& kind, const DeviceInfo& info,
                         const DeviceRecord& record, const std::string& extra = "");

// The text of a record, and back; absent for a text that is not one.
std::string device_record_text(const DeviceRecord& record);
std::optional<DeviceRecord> parse_device_record(const std::string& text);

}  // namespace prism
