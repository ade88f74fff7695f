#include "runtime/discovery/registry.h"

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "base/system/probe_library.h"
#include "prism/error.h"
#include "runtime/counted_device.h"
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
  } catch (const std::exception& error) {
    report.reason = error.what();
  }
  report.available = !report.devices.empty();
  if (!report.available && report.reason.empty()) report.reason = "no device found";
  return report;
}

// A software device has the host's memory, which it knows.
bool needs_to_be_told(const std::shared_ptr<DeviceDriver>& device) {
  return !device->info().software && dynamic_cast<SharesCard*>(device.get());
}

// Tells a device that asks for it of the others of its card. One that does not know its card (its
// card is its id) is taken for the only card of its name, where there is only one of both.
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
    slot.report.reason = "not looked for, since another one was named";
  }
}

void Registry::look_for(const std::vector<Slot*>& wanted) {
  // Made before the first thread starts: some try a library in a child process.
  for (Slot* slot : wanted)
    if (!slot->backend) slot->backend = slot->make();
  // Drivers take tens of milliseconds each to load, most of it waiting for files.
  std::vector<std::pair<Slot*, std::future<BackendReport>>> pending;
  for (Slot* slot : wanted) {
    if (slot->looked) continue;
    if (slot->is_left_out) {
      slot->report.label = slot->backend->label();
      slot->report.reason = fmt::format("left out by PRISM_BACKENDS={}", allowed_);
      slot->report.next_step = fmt::format("add {} to it", slot->name);
      slot->looked = true;
      continue;
    }
    // A single one needs no thread of its own, and others do without where none can be started.
    const auto how =
        wanted.size() == 1 ? std::launch::deferred : std::launch::async | std::launch::deferred;
    pending.emplace_back(slot, std::async(how, [slot] { return look(*slot->backend); }));
  }
  for (auto& [slot, result] : pending) {
    slot->report = result.get();
    slot->looked = true;
  }
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
  const auto gigabytes = [](uint64_t bytes) { return static_cast<double>(bytes) / (1ull << 30); };
  std::string text = "=== Available Backends ===\n";
  std::string recommended = "none";
  for (const BackendReport& report : reports) {
    text += fmt::format("{} {} ({})\n", report.available ? "✓" : "✗", report.label, report.label);
    for (size_t i = 0; i < report.devices.size(); ++i) {
      const DeviceInfo& info = report.devices[i]->info();
      // The CPU shares memory with itself: what is free of it is the news.
      const std::string memory =
          info.unified && !info.is_cpu
              ? "unified memory"
              : fmt::format("{:.2f} GB free", gigabytes(report.devices[i]->free_bytes()));
      text += info.total_bytes == kUnknownBytes
                  ? fmt::format("    [{}] {}: its memory is not told\n", i, info.name)
                  : fmt::format("    [{}] {}: {:.2f} GB ({})\n", i, info.name,
                                gigabytes(info.total_bytes), memory);
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
