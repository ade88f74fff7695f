// Runs discovery, concurrently for several backends, and prints the summary.
#include "runtime/discovery/registry.h"

#include <algorithm>
#include <future>
#include <map>
#include <new>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "base/system/child_run.h"
#include "base/system/host_memory.h"
#include "base/units.h"
#include "prism/error.h"
#include "runtime/counted_device.h"
#include "runtime/discovery/device_surroundings.h"
#include "runtime/discovery/driver_trial.h"
#include "runtime/discovery/selection.h"
#include "runtime/discovery/shares_card.h"

namespace prism {
namespace {

constexpr const char* kTestBackend = "null";

std::set<std::string> read_allowed(const std::string& allowed,
                                   const std::vector<std::string>& names) {
  std::set<std::string> result;
  size_t start = 0;
  while (start <= allowed.size()) {
    const size_t end = std::min(allowed.find(',', start), allowed.size());
    std::string word = allowed.substr(start, end - start);
    std::erase_if(word, [](unsigned char c) { return std::isspace(c); });
    start = end + 1;
    if (word.empty()) continue;
    const std::string name = canonical_backend(word);
    if (std::ranges::find(names, name) == names.end()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("PRISM_BACKENDS={}: \"{}\" is no backend{}", allowed, word,
                              valid_names(word, names)));
    }
    result.insert(name);
  }
  return result;
}

BackendReport look(Backend& backend) {
  BackendReport report;
  report.name = backend.name();
  report.label = backend.label();
  const LoadingLibraries loads;
  try {
    Discovery discovery = backend.discover();
    report.devices = std::move(discovery.devices);
    report.reason = std::move(discovery.reason);
    report.next_step = std::move(discovery.next_step);
    report.found = std::move(discovery.found);
  } catch (const std::bad_alloc&) {
    throw;  // it says nothing about the backend
  } catch (const std::exception& error) {
    report.reason = error.what();
  }
  report.available = !report.devices.empty();
  if (!report.available && report.reason.empty()) report.reason = "no device found";
  return report;
}

// The report of a backend whose driver failed its trial.
BackendReport refusal(const Backend& backend, const std::string& reason) {
  BackendReport report;
  report.name = backend.name();
  report.label = backend.label();
  report.reason = reason;
  report.next_step = fmt::format(
      "reinstall or update the driver; PRISM_BACKENDS without {} leaves it out", report.name);
  return report;
}

// Software devices use host memory, so they already know its size.
bool needs_to_be_told(const std::shared_ptr<DeviceDriver>& device) {
  return !device->info().software && dynamic_cast<SharesCard*>(device.get());
}

// Passes each SharesCard device the other devices of its card. A device with an unknown card (card
// equals id) is matched by name if exactly one card has that name.
void introduce(const std::vector<BackendReport>& reports) {
  std::vector<std::shared_ptr<DeviceDriver>> all;
  for (const BackendReport& report : reports)
    all.insert(all.end(), report.devices.begin(), report.devices.end());
  for (const auto& device : all) {
    auto* asking = dynamic_cast<SharesCard*>(device.get());
    if (!asking) continue;
    const DeviceInfo& mine = device->info();
    std::map<std::string, std::shared_ptr<DeviceDriver>> cards;
    size_t alike = 0;
    for (const auto& other : all) {
      const DeviceInfo& info = other->info();
      if (info.backend == mine.backend)
        alike += info.name == mine.name;
      else if (info.card == mine.card || (mine.card == mine.id && info.name == mine.name))
        cards.try_emplace(info.card, other);
    }
    if (cards.size() == 1 && (alike == 1 || cards.contains(mine.card)))
      asking->same_card(cards.begin()->second);
  }
}

}  // namespace

Registry::Registry(const std::vector<BackendMaker>& makers, const std::string& allowed)
    : allowed_(allowed) {
  for (const BackendMaker& maker : makers) {
    Slot& slot = slots_.emplace_back();
    slot.name = maker.name;
    slot.make = maker.make;
  }
  limit();
}

Registry::Registry(std::vector<std::unique_ptr<Backend>> backends, const std::string& allowed)
    : allowed_(allowed) {
  for (auto& backend : backends) {
    Slot& slot = slots_.emplace_back();
    slot.name = backend->name();
    slot.backend = std::move(backend);
  }
  limit();
}

void Registry::limit() {
  std::vector<std::string> names;
  for (const Slot& slot : slots_) names.push_back(slot.name);
  const std::set<std::string> listed = read_allowed(allowed_, names);
  std::erase_if(slots_, [&](const Slot& slot) {
    return slot.name == kTestBackend && !listed.contains(slot.name);
  });
  for (Slot& slot : slots_) {
    slot.is_left_out = !listed.empty() && !listed.contains(slot.name);
    slot.report.name = slot.report.label = slot.name;
    slot.report.reason = "not searched, because another backend was named";
  }
}

void Registry::look_for(const std::vector<Slot*>& wanted) {
  // Created before the first thread starts: some constructors probe a library in a child process.
  std::vector<Slot*> pending;
  for (Slot* slot : wanted) {
    if (!slot->backend) slot->backend = slot->make();
    if (slot->looked) continue;
    slot->looked = slot->is_left_out;
    if (slot->is_left_out) {
      slot->report.label = slot->backend->label();
      slot->report.reason = fmt::format("excluded by PRISM_BACKENDS={}", allowed_);
      slot->report.next_step = fmt::format("add {} to it", slot->name);
    } else {
      pending.push_back(slot);
    }
  }
  try_drivers(pending);
  // In parallel: each driver takes tens of milliseconds to load, mostly waiting for files. One
  // after another, as in the trial, where threads would use up a limited address space.
  const bool is_alone = pending.size() == 1 || address_space_limit();
  std::vector<std::pair<Slot*, std::future<BackendReport>>> looking;
  for (Slot* slot : pending) {
    if (!slot->trial_failure.empty()) {
      slot->report = refusal(*slot->backend, slot->trial_failure);
      slot->looked = true;
      continue;
    }
    // Where no thread can be started, the others do without one too.
    const auto how = is_alone ? std::launch::deferred : std::launch::async | std::launch::deferred;
    looking.emplace_back(slot, std::async(how, [slot] { return look(*slot->backend); }));
  }
  for (auto& [slot, result] : looking) {
    slot->report = result.get();
    slot->looked = true;
  }
}

// A fork of a process with a running driver cannot use that driver. So the trials of all backends,
// also of those that are not wanted yet, come before the first start.
void Registry::try_drivers(const std::vector<Slot*>& pending) {
  const auto starts_driver = [](const Slot* slot) { return slot->backend->starts_driver(); };
  if (has_tried_drivers_ || std::ranges::none_of(pending, starts_driver)) return;
  // The wanted ones come first: one that cannot live beside another is left out if it is second.
  std::vector<Slot*> order = pending;
  for (Slot& slot : slots_)
    if (!slot.is_left_out && std::ranges::find(pending, &slot) == pending.end())
      order.push_back(&slot);
  std::vector<std::string> names;
  for (const Slot* slot : order) names.push_back(slot->name);
  const std::string surroundings = device_surroundings(driver_folders());
  std::optional<TrialFailures> failures = known_trial(names, pending.size(), surroundings);
  if (!failures) {
    std::vector<Backend*> backends;
    for (Slot* slot : order) {
      if (!slot->backend) slot->backend = slot->make();
      backends.push_back(slot->backend.get());
    }
    failures = try_backends(backends, surroundings, driver_time_limit());
  }
  for (Slot* slot : order) slot->trial_failure = (*failures)[slot->name];
  has_tried_drivers_ = true;
}

const std::vector<BackendReport>& Registry::all_locked() {
  if (has_all_) return all_;
  std::vector<Slot*> wanted;
  for (Slot& slot : slots_) wanted.push_back(&slot);
  look_for(wanted);
  for (const Slot& slot : slots_) all_.push_back(slot.report);
  introduce(all_);
  has_all_ = true;
  return all_;
}

const std::vector<BackendReport>& Registry::all() {
  const std::scoped_lock lock(mutex_);
  return all_locked();
}

bool Registry::has_all() const {
  const std::scoped_lock lock(mutex_);
  return has_all_;
}

std::vector<BackendReport> Registry::only(const std::set<std::string>& names) {
  const std::scoped_lock lock(mutex_);
  std::vector<Slot*> wanted;
  for (Slot& slot : slots_)
    if (names.contains(slot.name)) wanted.push_back(&slot);
  look_for(wanted);
  for (const Slot* slot : wanted)
    if (std::ranges::any_of(slot->report.devices, needs_to_be_told)) return all_locked();
  std::vector<BackendReport> reports;
  for (const Slot& slot : slots_) reports.push_back(slot.report);
  return reports;
}

std::vector<BackendReport> find_devices(std::vector<std::unique_ptr<Backend>> backends,
                                        const std::string& allowed) {
  return Registry(std::move(backends), allowed).all();
}

std::string summary_text(const std::vector<BackendReport>& reports, const Choice& choice) {
  std::string text = "=== Available Backends ===\n";
  std::string recommended = "none";
  for (const BackendReport& report : reports) {
    text += fmt::format("{} {} ({})\n", report.available ? "✓" : "✗", report.label, report.label);
    for (size_t i = 0; i < report.devices.size(); ++i) {
      const DeviceInfo& info = report.devices[i]->info();
      // The CPU is always unified; report its free memory instead.
      const std::string memory =
          info.unified && !info.is_cpu
              ? "unified memory"
              : fmt::format("{} free", size_text(report.devices[i]->free_bytes()));
      text += info.total_bytes == kUnknownBytes
                  ? fmt::format("    [{}] {}: memory size not reported\n", i, info.name)
                  : fmt::format("    [{}] {}: {} ({})\n", i, info.name, size_text(info.total_bytes),
                                memory);
      if (choice.device && choice.device.id() == info.id) recommended = report.label;
    }
    if (report.reason.empty()) continue;
    text += fmt::format("    {}: {}{}{}\n", report.available ? "Note" : "Error", report.reason,
                        report.next_step.empty() ? "" : "; ", report.next_step);
  }
  text += fmt::format("\nRecommended backend: {}\n", recommended);
  if (choice.device && !choice.device.why().empty())
    text += fmt::format("    {}\n", choice.device.why());
  return text;
}

}  // namespace prism
