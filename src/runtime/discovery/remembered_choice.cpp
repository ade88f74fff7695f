// Stores the choice and its validity in the cache folder.
#include "runtime/discovery/remembered_choice.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "runtime/discovery/choice_record.h"
#include "runtime/discovery/timed_record.h"
#include "runtime/driver.h"

namespace prism {
namespace {

constexpr const char* kKind = "choice";
constexpr const char* kRemembered = "remembered: ";

std::string key(const std::string& surroundings, Work work) {
  return fmt::format("work {}\n{}", static_cast<int>(work), surroundings);
}

}  // namespace

std::optional<RememberedChoice> remembered_choice(const std::string& surroundings, Work work) {
  const auto text = read_timed_record(kKind, key(surroundings, work));
  return text ? parse_choice(*text) : std::nullopt;
}

void remember_choice(const std::string& surroundings, Work work, const Device& chosen,
                     std::chrono::seconds valid) {
  const DeviceInfo& info = chosen.driver().info();
  const RememberedChoice choice{info.id,   info.backend, info.name,
                                info.card, info.driver,  chosen.why()};
  write_timed_record(kKind, key(surroundings, work), choice_text(choice), valid);
}

void forget_choices() {
  const auto folder = cache_subfolder(kKind);
  if (folder.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

std::chrono::seconds choice_validity(const DeviceInfo& chosen, std::optional<bool> has_cards) {
  constexpr auto kWeek = std::chrono::hours(7 * 24);
  if (!chosen.is_cpu) return kWeek;
  if (!has_cards) return std::chrono::seconds(0);
  return *has_cards ? std::chrono::hours(1) : kWeek;
}

std::optional<Device> still_there(const RememberedChoice& choice,
                                  const std::vector<BackendReport>& reports) {
  for (const BackendReport& report : reports)
    for (const auto& driver : report.devices) {
      const DeviceInfo& info = driver->info();
      if (info.id == choice.id && one_line(info.name) == choice.name &&
          one_line(info.card) == choice.card && one_line(info.driver) == choice.driver)
        return Device(driver, kRemembered + choice.why);
    }
  return std::nullopt;
}

}  // namespace prism
