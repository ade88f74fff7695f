// Reads and writes the tuned choices in the cache folder.
#include "runtime/measure/tuned.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "runtime/device_records.h"

namespace prism {
namespace {

constexpr const char* kKind = "tuned";

thread_local TrialChoice* trial = nullptr;

// Read once, because plans ask for every product.
struct Known {
  std::mutex mutex;
  std::map<std::string, DeviceRecord> by_device;
  DeviceRecord& of(const DeviceInfo& device) {
    const auto [entry, fresh] = by_device.try_emplace(device.id + '\n' + device.driver);
    if (fresh) entry->second = read_device_record(kKind, device).value_or(DeviceRecord());
    return entry->second;
  }
};
Known& known() {
  static auto& one = *new Known;
  return one;
}

}  // namespace

std::optional<std::string> tuned_choice(const DeviceInfo& device, const std::string& key) {
  if (trial) {
    if (!std::ranges::count(trial->keys_, key)) trial->keys_.push_back(key);
    return trial->choice_;
  }
  const std::scoped_lock lock(known().mutex);
  const DeviceRecord& choices = known().of(device);
  const auto found = choices.find(key);
  return found == choices.end() ? std::nullopt : std::optional(found->second);
}

void keep_tuned_choice(const DeviceInfo& device, const std::string& key,
                       const std::string& choice) {
  const std::scoped_lock lock(known().mutex);
  DeviceRecord& choices = known().of(device);
  choices[key] = choice;
  write_device_record(kKind, device, choices);
}

TrialChoice::TrialChoice(std::string choice) : choice_(std::move(choice)), before_(trial) {
  trial = this;
}

TrialChoice::~TrialChoice() { trial = before_; }

}  // namespace prism
