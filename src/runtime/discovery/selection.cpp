// Parses device spellings and ranks the candidates.
#include "runtime/discovery/selection.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>

#include "base/suggest.h"
#include "base/units.h"
#include "prism/error.h"
#include "runtime/discovery/cards.h"
#include "runtime/driver.h"

namespace prism {
namespace {

using DevicePointer = std::shared_ptr<DeviceDriver>;

struct Spelling {
  std::string backend;  // canonical; also "auto" and "gpu"
  std::optional<size_t> index;
};

Spelling read_spelling(const std::string& text, const std::vector<BackendReport>& reports,
                       const std::string& source) {
  std::vector<std::string> names = {"auto", "gpu"};
  for (const BackendReport& report : reports) names.push_back(report.name);
  Spelling spelling;
  const size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  spelling.backend = canonical_backend(word);
  if (std::ranges::find(names, spelling.backend) == names.end()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}\"{}\" is no device{}", source, text, valid_names(word, names)));
  }
  if (colon == std::string::npos) return spelling;
  const std::string digits = text.substr(colon + 1);
  const bool number = !digits.empty() && digits.size() < 6 &&
                      std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c); });
  if (!number || spelling.backend == "auto" || spelling.backend == "gpu") {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}\"{}\" is no device; write a backend and a number, such as vulkan:0",
                            source, text));
  }
  spelling.index = std::stoul(digits);
  return spelling;
}

std::string joined(const std::string& reason, const std::string& next_step) {
  return next_step.empty() ? reason : reason + "; " + next_step;
}

std::string free_text(DeviceDriver& device) {
  const uint64_t bytes = device.free_bytes();
  return fmt::format("{} bytes ({}) free", bytes, size_text(bytes));
}

std::string ids(const BackendReport& report) {
  std::string text;
  for (const DevicePointer& device : report.devices) {
    text +=
        fmt::format("{}{} ({})", text.empty() ? "" : ", ", device->info().id, device->info().name);
  }
  return text;
}

// Finds a device by backend and index; throws with the reason if it is unavailable.
DevicePointer find_named(const Candidates& candidates, const Spelling& spelling,
                         const std::string& source) {
  const auto& reports = candidates.reports;
  const auto report = std::ranges::find(reports, spelling.backend, &BackendReport::name);
  if (!report->available) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}{} cannot be used: {}", source, spelling.backend,
                            joined(report->reason, report->next_step)));
  }
  if (spelling.index) {
    if (*spelling.index < report->devices.size()) return report->devices[*spelling.index];
    throw Error(ErrorCode::kNotFound, fmt::format("{}there is no {}:{}; available: {}", source,
                                                  spelling.backend, *spelling.index, ids(*report)));
  }
  // Drivers may list a software device before a card.
  const auto hardware =
      std::ranges::find_if(report->devices, [](const auto& d) { return !d->info().software; });
  return hardware != report->devices.end() ? *hardware : report->devices.front();
}

bool is_hardware_gpu(const DeviceInfo& info) { return !info.software && !info.is_cpu; }

struct Ranked {
  DevicePointer device;
  std::optional<double> seconds;
  size_t card = 0;  // index of the card it belongs to
};

bool all_measured(const std::vector<Ranked>& ranked) {
  return std::ranges::all_of(ranked, [](const Ranked& r) { return r.seconds.has_value(); });
}

std::vector<Ranked> ways_to(size_t card, const std::vector<Ranked>& ranked) {
  std::vector<Ranked> ways;
  std::ranges::copy_if(ranked, std::back_inserter(ways),
                       [&](const Ranked& r) { return r.card == card; });
  return ways;
}

void number_cards(std::vector<Ranked>& ranked, const std::vector<BackendReport>& reports) {
  const std::vector<Card> cards = group_by_card(reports);
  for (Ranked& each : ranked)
    for (size_t card = 0; card < cards.size(); ++card)
      if (std::ranges::find(cards[card].ways, each.device) != cards[card].ways.end())
        each.card = card;
}

// Unless every device was measured, cards keep the order of preference. The devices of one card are
// sorted by speed if all of them were measured.
void sort_ways(std::vector<Ranked>& ranked) {
  const std::vector<Ranked> before = ranked;
  for (const Ranked& first : before) {
    std::vector<Ranked> ways = ways_to(first.card, before);
    if (!all_measured(ways)) continue;
    std::ranges::stable_sort(ways, {}, [](const Ranked& r) { return *r.seconds; });
    auto next = ways.begin();
    for (Ranked& place : ranked)
      if (place.card == first.card) place = *next++;
  }
}

std::string why_chosen(const Ranked& chosen, const std::vector<Ranked>& ranked, bool measured) {
  const auto gpus = std::ranges::count_if(
      ranked, [](const Ranked& r) { return is_hardware_gpu(r.device->info()); });
  if (chosen.device->info().is_cpu && gpus == 0) return "no GPU was found that Prism can use";
  if (chosen.device->info().software)
    return "a software device, because the CPU itself is excluded";
  if (measured) return fmt::format("measured fastest of {} devices on this machine", ranked.size());
  if (const auto ways = ways_to(chosen.card, ranked); ways.size() > 1 && all_measured(ways))
    return fmt::format("measured fastest of {} ways to this card", ways.size());
  if (chosen.device->info().is_cpu) return "no GPU could be used (see why each was passed over)";
  return "first in the order of preference; `prism calibrate` lets measurements decide";
}

std::string why_rejected(const Ranked& device, const Ranked& chosen, bool measured) {
  const DeviceInfo& winner = chosen.device->info();
  const std::string card =
      device.card == chosen.card ? fmt::format("the same card as {}; ", winner.id) : "";
  if (measured || (device.card == chosen.card && device.seconds && chosen.seconds)) {
    return fmt::format(
        "{}measured slower than {}: {:.2f} ms against {:.2f} ms for the reference work", card,
        winner.id, *device.seconds * 1e3, *chosen.seconds * 1e3);
  }
  return fmt::format("{}after {} in the order of preference", card, winner.id);
}

// Takes the best device that has the memory and passes its self-check; records why the others were
// passed over.
bool take_first(const Candidates& candidates, std::vector<Ranked>& ranked, uint64_t bytes,
                Choice& choice) {
  number_cards(ranked, candidates.reports);
  const bool measured = ranked.size() > 1 && all_measured(ranked);
  if (measured)
    std::ranges::stable_sort(ranked, {}, [](const Ranked& r) { return *r.seconds; });
  else
    sort_ways(ranked);

  const Ranked* chosen = nullptr;
  for (const Ranked& candidate : ranked) {
    const DeviceInfo& info = candidate.device->info();
    if (chosen) {
      choice.rejected.push_back({info.id, why_rejected(candidate, *chosen, measured)});
      continue;
    }
    if (bytes > 0 && bytes > candidate.device->free_bytes()) {  // a lost device has no figure
      choice.rejected.push_back({info.id, free_text(*candidate.device)});
      continue;
    }
    const Device device(candidate.device, why_chosen(candidate, ranked, measured));
    // The CPU runs the interpreter, the reference for the self-check.
    std::string wrong;
    if (!info.is_cpu && candidates.self_check) wrong = candidates.self_check(device);
    if (!wrong.empty()) {
      choice.rejected.push_back({info.id, "failed its self-check: " + wrong, true});
      continue;
    }
    choice.device = device;
    chosen = &candidate;
  }
  return chosen != nullptr;
}

Choice choose_automatically(const Candidates& candidates, bool gpus_only, uint64_t bytes) {
  Choice choice;
  std::vector<Ranked> ranked;
  const auto seconds = [&](const DeviceInfo& info) {
    return candidates.measured_seconds ? candidates.measured_seconds(info) : std::nullopt;
  };
  for (const BackendReport& report : candidates.reports) {
    if (!report.available) {
      choice.rejected.push_back({report.name, joined(report.reason, report.next_step)});
      continue;
    }
    for (const DevicePointer& device : report.devices) {
      const DeviceInfo& info = device->info();
      if (info.software) {
        choice.rejected.push_back(
            {info.id, "a software device, no faster than the CPU itself; used only by name"});
      } else if (gpus_only && info.is_cpu) {
        choice.rejected.push_back({info.id, "not a GPU"});
      } else {
        ranked.push_back({device, seconds(info)});
      }
    }
  }
  if (take_first(candidates, ranked, bytes, choice)) return choice;
  // If PRISM_BACKENDS excludes the CPU and only software devices remain, they were asked for.
  const bool software_only = !gpus_only && std::ranges::none_of(ranked, [](const Ranked& r) {
    return r.device->info().is_cpu;
  });
  if (software_only) {
    ranked.clear();
    for (const BackendReport& report : candidates.reports)
      for (const DevicePointer& device : report.devices)
        if (device->info().software) ranked.push_back({device, seconds(device->info())});
    std::erase_if(choice.rejected, [&](const Rejection& rejection) {
      return std::ranges::any_of(
          ranked, [&](const Ranked& r) { return r.device->info().id == rejection.id; });
    });
    if (take_first(candidates, ranked, bytes, choice)) return choice;
  }

  std::string text = bytes
                         ? fmt::format("no device has {} bytes free", bytes)
                         : std::string(gpus_only ? "no GPU can be used" : "no device can be used");
  for (const Rejection& rejection : choice.rejected)
    text += fmt::format("\n  {}: {}", rejection.id, rejection.reason);
  if (bytes && !software_only) {
    for (const BackendReport& report : candidates.reports) {
      for (const DevicePointer& device : report.devices) {
        if (device->info().software)
          text += fmt::format("\n  {}: {}", device->info().id, free_text(*device));
      }
    }
  }
  throw Error(bytes ? ErrorCode::kOutOfMemory : ErrorCode::kNotFound, text);
}

Choice choose_named(const Candidates& candidates, const Spelling& spelling, uint64_t bytes,
                    const std::string& why, const std::string& source) {
  const DevicePointer device = find_named(candidates, spelling, source);
  Choice choice;
  if (bytes > 0 && bytes > device->free_bytes()) {
    std::string text = fmt::format("{}{}: {} bytes needed, {}", source, device->info().id, bytes,
                                   free_text(*device));
    // Without an index, any device of the backend qualifies.
    const auto report =
        std::ranges::find(candidates.reports, spelling.backend, &BackendReport::name);
    for (const DevicePointer& other : report->devices) {
      if (spelling.index || other == device) continue;
      if (other->free_bytes() >= bytes) {
        choice.rejected.push_back({device->info().id, free_text(*device)});
        choice.device = Device(other, why);
        return choice;
      }
      text += fmt::format("\n  {}: {}", other->info().id, free_text(*other));
    }
    throw Error(ErrorCode::kOutOfMemory, text);
  }
  choice.device = Device(device, why);
  return choice;
}

}  // namespace

std::string canonical_backend(const std::string& name) {
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "rocm") return "hip";
  if (lower == "mps") return "metal";
  if (lower == "oneapi") return "sycl";
  if (lower == "wgpu") return "webgpu";
  return lower;
}

std::string backend_of(BackendPreference preference) {
  switch (preference) {
    case BackendPreference::Auto:
      return "";
    case BackendPreference::Cuda:
      return "cuda";
    case BackendPreference::Rocm:
      return "hip";
    case BackendPreference::Metal:
      return "metal";
    case BackendPreference::Vulkan:
      return "vulkan";
    case BackendPreference::Sycl:
      return "sycl";
    case BackendPreference::OpenCL:
      return "opencl";
    case BackendPreference::WebGpu:
      return "webgpu";
    case BackendPreference::Cpu:
      return "cpu";
  }
  return "";
}

std::optional<std::set<std::string>> named_backends(const std::string& spelling,
                                                    const std::string& prism_device) {
  const auto backend = [](const std::string& text) {
    return text.empty() ? "auto" : canonical_backend(text.substr(0, text.find(':')));
  };
  const std::string asked = backend(spelling), preset = backend(prism_device);
  const bool is_preset = preset != "auto" && preset != "gpu";
  if (asked == "gpu" || (asked == "auto" && !is_preset)) return std::nullopt;
  std::set<std::string> names;
  if (asked != "auto") names.insert(asked);
  if (is_preset) names.insert(preset);
  return names;
}

Choice choose_from(const Candidates& candidates, const std::string& text, uint64_t bytes) {
  // A PRISM_DEVICE that names an absent device is always an error, since it would mislead later.
  std::optional<Spelling> preset;
  const std::string source = fmt::format("PRISM_DEVICE={}: ", candidates.prism_device);
  if (!candidates.prism_device.empty()) {
    preset = read_spelling(candidates.prism_device, candidates.reports, source);
    if (preset->backend == "auto")
      preset.reset();
    else if (preset->backend != "gpu")
      find_named(candidates, *preset, source);
  }
  const Spelling spelling = read_spelling(text.empty() ? "auto" : text, candidates.reports, "");
  if (spelling.backend == "auto") {
    if (!preset) {
      Choice choice = choose_automatically(candidates, false, bytes);
      choice.device = choice.device.as_automatic();
      return choice;
    }
    if (preset->backend == "gpu") return choose_automatically(candidates, true, bytes);
    return choose_named(candidates, *preset, bytes,
                        "named by PRISM_DEVICE=" + candidates.prism_device, source);
  }
  if (spelling.backend == "gpu") {
    if (preset && preset->backend != "gpu" &&
        is_hardware_gpu(find_named(candidates, *preset, source)->info())) {
      return choose_named(candidates, *preset, bytes,
                          "named by PRISM_DEVICE=" + candidates.prism_device, source);
    }
    return choose_automatically(candidates, true, bytes);
  }
  return choose_named(candidates, spelling, bytes, fmt::format("asked for as \"{}\"", text), "");
}

}  // namespace prism
