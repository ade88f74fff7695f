// The process-wide result of discovery, and the choices made from it.
#include "prism/device.h"
#include "runtime/discovery/backend_list.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "prism/error.h"
#include "runtime/discovery/device_surroundings.h"
#include "runtime/discovery/pci.h"
#include "runtime/discovery/plugins.h"
#include "runtime/discovery/registry.h"
#include "runtime/discovery/remembered_choice.h"
#include "runtime/discovery/selection.h"
#include "runtime/measure/calibrate.h"
#include "runtime/measure/self_check.h"

namespace prism {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Never destroyed: drivers may already be unloaded when static destructors run.
Registry& registry() {
  static Registry& all = *[] {
    const std::string folder = environment("PRISM_PLUGINS"),
                      allowed = environment("PRISM_BACKENDS");
    if (folder.empty()) return new Registry(backend_makers(), allowed);
    std::vector<std::unique_ptr<Backend>> backends;
    for (const BackendMaker& maker : backend_makers()) backends.push_back(maker.make());
    add_plugins(backends, folder);
    return new Registry(std::move(backends), allowed);
  }();
  return all;
}

Candidates candidates(const std::vector<BackendReport>& reports, Work work = Work::balanced) {
  const auto measured = [work](const DeviceInfo& info) -> std::optional<double> {
    const auto calibration = known_calibration(info);
    return calibration ? std::optional(reference_seconds(*calibration, work)) : std::nullopt;
  };
  return {reports, environment("PRISM_DEVICE"), quick_self_check, measured};
}

Choice choose(const Candidates& all, const std::string& spelling, uint64_t bytes = 0) {
  Choice choice = choose_from(all, spelling, bytes);
  choice.device = choice.device.current();
  if (!choice.device.info().is_cpu) apply_known_self_check(choice.device);
  return choice;
}

// The device that Auto chose in an earlier run, if it is present, passes its self-check and has the
// memory.
std::optional<Device> recall(const std::string& surroundings, Work work, bool gpus_only,
                             uint64_t bytes) {
  const auto known = remembered_choice(surroundings, work);
  if (!known) return std::nullopt;
  const std::optional<Device> device = still_there(*known, registry().only({known->backend}));
  if (!device || (gpus_only && (device->info().is_cpu || device->info().software)) ||
      (bytes > 0 && bytes > device->free_bytes()))
    return std::nullopt;
  if (!device->info().is_cpu && !quick_self_check(*device).empty()) return std::nullopt;
  return device;
}

// Starts only the backends that the choice needs.
Choice find_choice(const std::string& spelling, Work work, uint64_t bytes) {
  const std::string preset = environment("PRISM_DEVICE");
  if (const auto named = named_backends(spelling, preset)) {
    const std::vector<BackendReport> reports = registry().only(*named);
    return choose(candidates(reports, work), spelling, bytes);
  }
  const bool is_auto = canonical_backend(spelling) != "gpu" && canonical_backend(preset) != "gpu";
  // Before any driver starts: drivers set environment variables of their own.
  const std::string surroundings = device_surroundings(driver_folders());
  if (!registry().has_all())
    if (const auto device = recall(surroundings, work, !is_auto, bytes))
      return {(is_auto ? device->as_automatic() : *device).current(), {}};
  Choice choice = choose(candidates(registry().all(), work), spelling, bytes);
  // Do not remember a choice that was restricted by memory or to GPUs: Auto alone might differ.
  if (is_auto && bytes == 0) {
    const auto cards =
        surroundings_show_cards() ? std::optional(!pci_cards().empty()) : std::nullopt;
    remember_choice(surroundings, work, choice.device,
                    choice_validity(choice.device.info(), cards));
  }
  return choice;
}

}  // namespace

const std::vector<BackendReport>& discover_backends() { return registry().all(); }

std::string backend_summary() {
  const std::vector<BackendReport>& reports = discover_backends();
  Choice choice;
  try {
    choice = choose_device();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound || !environment("PRISM_DEVICE").empty()) throw;
  }
  return summary_text(reports, choice);
}

void print_backend_summary(std::ostream& out) { out << backend_summary(); }
void print_backend_summary() { print_backend_summary(std::cout); }

Choice choose_device(const std::string& spelling, Work work) {
  return find_choice(spelling, work, 0);
}

Device next_best_device(const Device& failed) {
  std::vector<BackendReport> others = discover_backends();
  for (BackendReport& report : others) {
    std::erase_if(report.devices, [&](const auto& driver) {
      return driver->info().card == failed.info().card || driver->info().id == failed.id() ||
             Device(driver, "").as_automatic().is_given_up();
    });
    if (report.available && report.devices.empty()) {
      report.available = false;
      report.reason = "its devices failed";
    }
  }
  Candidates rest{others, "", quick_self_check, candidates(others).measured_seconds};
  return choose(rest, "auto").device;
}

Device init_backend(BackendPreference preference) {
  return find_choice(backend_of(preference), Work::balanced, 0).device;
}

Device best_available_backend() { return init_backend(BackendPreference::Auto); }

Device init_backend_with_memory_check(BackendPreference preference, uint64_t bytes) {
  return find_choice(backend_of(preference), Work::balanced, bytes).device;
}

// Independent of PRISM_DEVICE and PRISM_BACKENDS: host memory is always handled by the CPU device.
// Cached, because every tensor of a model file asks for it.
Device Device::cpu() {
  static const Device& cpu = *[] {
    std::vector<BackendReport> reports = registry().only({"cpu"});
    const auto report = std::ranges::find(reports, "cpu", &BackendReport::name);
    for (const BackendMaker& maker : backend_makers()) {
      if (report->available || maker.name != report->name) continue;
      report->devices = maker.make()->discover().devices;  // excluded from selection
      report->available = !report->devices.empty();
    }
    return new Device(choose_from(Candidates{reports, "", {}, {}}, "cpu").device);
  }();
  return cpu;
}

Device Device::gpu() { return choose_device("gpu").device; }

bool Device::is_gpu_available() {
  return std::ranges::any_of(discover_backends(), [](const BackendReport& report) {
    return std::ranges::any_of(report.devices, [](const auto& device) {
      return !device->info().software && !device->info().is_cpu;
    });
  });
}

Device Device::named(const std::string& spelling) { return choose_device(spelling).device; }

}  // namespace prism
