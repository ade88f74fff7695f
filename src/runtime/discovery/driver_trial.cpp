// Runs the trials and keeps their results in the cache folder.
#include "runtime/discovery/driver_trial.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/system/child_run.h"
#include "runtime/discovery/timed_record.h"

namespace prism {
namespace {

// Records of trials in one order, and of trials in any order.
constexpr const char *kOrdered = "drivers", *kUnordered = "drivers-any-order";
constexpr auto kLong = std::chrono::hours(7 * 24), kShort = std::chrono::hours(1);

std::string ordered_key(const std::vector<std::string>& names, const std::string& surroundings) {
  return fmt::format("tried together: {}\n{}", fmt::join(names, " "), surroundings);
}

std::string unordered_key(std::vector<std::string> names, const std::string& surroundings) {
  std::ranges::sort(names);
  return ordered_key(names, surroundings);
}

// One line for each failed backend: its name and the reason.
std::string record_text(const TrialFailures& failures) {
  std::string text;
  for (const auto& [name, reason] : failures) text += name + " " + reason + "\n";
  return text;
}

// `since` is added to each reason.
TrialFailures read_failures(const std::string& text, const std::string& since) {
  TrialFailures failures;
  std::istringstream lines(text);
  std::string name, reason;
  while (lines >> name && std::getline(lines >> std::ws, reason)) failures[name] = reason + since;
  return failures;
}

// Runs one child. Returns the index of the first backend that failed, with the reason; the number
// of backends if none did. Nothing if no child can be made.
std::optional<std::pair<size_t, std::string>> try_together(const std::vector<Backend*>& backends,
                                                           std::chrono::milliseconds limit) {
  const auto result = run_in_child(
      [&](const Say& say) {
        for (Backend* backend : backends) {
          try {
            // Never freed: this process keeps its devices too, and destructors may crash.
            new Discovery(backend->discover());
          } catch (const std::exception&) {
            // recurs in this process, where it is reported
          }
          say(".");
        }
      },
      limit);
  if (!result) return std::nullopt;
  return std::pair(result->said.size(), result->failure);
}

std::optional<TrialFailures> try_all(std::vector<Backend*> backends,
                                     std::chrono::milliseconds limit) {
  TrialFailures failures;
  while (!backends.empty()) {
    const auto tried = try_together(backends, limit);
    if (!tried) return std::nullopt;
    const auto& [index, failure] = *tried;
    if (index >= backends.size()) break;
    const auto failed = backends.begin() + static_cast<std::ptrdiff_t>(index);
    failures[(*failed)->name()] = fmt::format("its driver {}", failure);
    backends.erase(failed);
  }
  return failures;
}

}  // namespace

TrialFailures try_backends(std::span<Backend* const> backends, const std::string& surroundings,
                           std::chrono::milliseconds limit) {
  std::vector<Backend*> tried;
  std::ranges::copy_if(backends, std::back_inserter(tried),
                       [](const Backend* backend) { return backend->starts_driver(); });
  if (tried.empty()) return {};
  const std::optional<TrialFailures> failures = try_all(tried, limit);
  if (!failures) return {};
  std::vector<std::string> names;
  for (const Backend* backend : backends) names.push_back(backend->name());
  const std::string text = record_text(*failures);
  write_timed_record(kOrdered, ordered_key(names, surroundings), text,
                     failures->empty() ? kLong : kShort);
  write_timed_record(kUnordered, unordered_key(names, surroundings), text, kLong);
  return *failures;
}

std::optional<TrialFailures> known_trial(const std::vector<std::string>& names, size_t wanted,
                                         const std::string& surroundings) {
  if (const auto known = read_timed_record(kOrdered, ordered_key(names, surroundings)))
    return read_failures(*known, " within the last hour");
  const auto known = read_timed_record(kUnordered, unordered_key(names, surroundings));
  if (!known) return std::nullopt;
  TrialFailures failures = read_failures(*known, " within the last week");
  const bool counts =
      std::none_of(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(wanted),
                   [&](const std::string& name) { return failures.contains(name); });
  return counts ? std::optional(std::move(failures)) : std::nullopt;
}

std::chrono::milliseconds driver_time_limit() {
  const char* text = std::getenv("PRISM_DRIVER_SECONDS");
  if (!text || !*text) return std::chrono::seconds(60);
  char* end = nullptr;
  const long long seconds = std::strtoll(text, &end, 10);
  if (*end || seconds < 1 || seconds > 3600)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("PRISM_DRIVER_SECONDS is '{}'; give a number from 1 to 3600", text));
  return std::chrono::seconds(seconds);
}

}  // namespace prism
