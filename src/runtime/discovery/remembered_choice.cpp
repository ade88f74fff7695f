// Stores the choice and its validity in the cache folder.
#include "runtime/discovery/remembered_choice.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "runtime/driver.h"

namespace prism {
namespace {

constexpr const char* kKind = "choice";
constexpr const char* kRemembered = "remembered: ";

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string key(const std::string& surroundings, Work work) {
  return fmt::format("work {}\n{}", static_cast<int>(work), surroundings);
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

std::optional<RememberedChoice> remembered_choice(const std::string& surroundings, Work work) {
  const auto content = read_cached(kKind, key(surroundings, work));
  if (!content) return std::nullopt;
  std::istringstream lines(
      std::string(reinterpret_cast<const char*>(content->data()), content->size()));
  std::string made, ends;
  RememberedChoice choice;
  for (std::string* line : {&made, &ends, &choice.id, &choice.backend, &choice.name, &choice.card,
                            &choice.driver, &choice.why})
    if (!std::getline(lines, *line)) return std::nullopt;
  const int64_t now = seconds_now();
  // A record from the future means that the clock was set back; ignore it.
  if (now < std::strtoll(made.c_str(), nullptr, 10) ||
      now >= std::strtoll(ends.c_str(), nullptr, 10))
    return std::nullopt;
  return choice;
}

void remember_choice(const std::string& surroundings, Work work, const Device& chosen,
                     std::chrono::seconds valid) {
  if (valid.count() <= 0) return;
  const DeviceInfo& info = chosen.driver().info();
  const int64_t now = seconds_now();
  std::string text = fmt::format("{}\n{}\n", now, now + valid.count());
  for (const std::string& line :
       {info.id, info.backend, info.name, info.card, info.driver, chosen.why()})
    text += one_line(line) + "\n";
  write_cached(kKind, key(surroundings, work), std::as_bytes(std::span(text)));
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
