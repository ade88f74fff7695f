// Reads and writes per-device records in the cache folder.
#include "runtime/device_records.h"

#include <sstream>

#include <fmt/format.h>

#include "base/cache_folder.h"

namespace prism {
namespace {

// Capabilities are not part of the key. A backend may detect some of them at first use, and a
// record written afterwards must still be found before that.
std::string record_key(const DeviceInfo& info, const std::string& extra) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", info.id, info.name, info.card, info.driver, extra);
}

}  // namespace

std::optional<DeviceRecord> read_device_record(const std::string& kind, const DeviceInfo& info,
                                               const std::string& extra) {
  const auto content = read_cached(kind, record_key(info, extra));
  if (!content) return std::nullopt;
  return parse_device_record({reinterpret_cast<const char*>(content->data()), content->size()});
}

std::optional<DeviceRecord> parse_device_record(const std::string& text) {
  std::istringstream lines(text);
  DeviceRecord record;
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) return std::nullopt;
    record[line.substr(0, space)] = line.substr(space + 1);
  }
  return record;
}

std::string device_record_text(const DeviceRecord& record) {
  std::string text;
  for (const auto& [name, value] : record) text += fmt::format("{} {}\n", name, value);
  return text;
}

bool write_device_record(const std::string& kind, const DeviceInfo& info,
                         const DeviceRecord& record, const std::string& extra) {
  const std::string text = device_record_text(record);
  return write_cached(kind, record_key(info, extra), std::as_bytes(std::span(text)));
}

}  // namespace prism
