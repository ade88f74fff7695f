#include "runtime/registry.h"

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/suggest.h"
#include "runtime/selection.h"
#include "runtime/shares_card.h"

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

std::vector<BackendReport> find_devices(std::vector<std::unique_ptr<Backend>> backends,
                                        const std::string& allowed) {
  std::vector<std::string> names;
  for (const auto& backend : backends) names.push_back(backend->name());
  const std::set<std::string> listed = read_allowed(allowed, names);

  // Drivers take tens of milliseconds each to load, most of it waiting for files.
  std::vector<std::future<BackendReport>> pending;
  for (const auto& backend : backends) {
    if (listed.empty() ? backend->name() != kTestBackend : listed.contains(backend->name())) {
      pending.push_back(std::async(std::launch::async, [&backend] { return look(*backend); }));
      continue;
    }
    BackendReport report;
    report.name = backend->name();
    report.label = backend->label();
    report.reason = fmt::format("left out by PRISM_BACKENDS={}", allowed);
    report.next_step = fmt::format("add {} to it", report.name);
    if (report.name == kTestBackend) continue;
    pending.push_back(std::async(std::launch::deferred, [report] { return report; }));
  }
  std::vector<BackendReport> reports;
  for (auto& result : pending) reports.push_back(result.get());
  introduce(reports);
  return reports;
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
      text += fmt::format("    [{}] {}: {:.2f} GB ({})\n", i, info.name,
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
