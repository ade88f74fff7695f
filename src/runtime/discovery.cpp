// The process-wide result of discovery, and the choices made from it.
#include "runtime/discovery.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "runtime/calibrate.h"
#include "runtime/plugins.h"
#include "runtime/registry.h"
#include "runtime/selection.h"
#include "runtime/self_check.h"

namespace prism {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Candidates candidates(Work work = Work::balanced) {
  const auto measured = [work](const DeviceInfo& info) -> std::optional<double> {
    const auto calibration = known_calibration(info);
    return calibration ? std::optional(reference_seconds(*calibration, work)) : std::nullopt;
  };
  return {discover_backends(), environment("PRISM_DEVICE"), quick_self_check, measured};
}

Choice choose(const Candidates& all, const std::string& spelling, uint64_t bytes = 0) {
  Choice choice = choose_from(all, spelling, bytes);
  choice.device = choice.device.current();
  if (!choice.device.info().is_cpu) apply_known_self_check(choice.device);
  return choice;
}

}  // namespace

const std::vector<BackendReport>& discover_backends() {
  // Never destroyed: drivers may have been unloaded by the time static objects go.
  static const auto& reports = *[] {
    std::vector<std::unique_ptr<Backend>> backends;
    for (const BackendMaker make : backend_makers()) backends.push_back(make());
    add_plugins(backends, environment("PRISM_PLUGINS"));
    return new std::vector<BackendReport>(
        find_devices(std::move(backends), environment("PRISM_BACKENDS")));
  }();
  return reports;
}

std::string backend_summary() {
  Choice choice;
  try {
    choice = choose_device();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound || !environment("PRISM_DEVICE").empty()) throw;
  }
  return summary_text(discover_backends(), choice);
}

void print_backend_summary(std::ostream& out) { out << backend_summary(); }

Choice choose_device(const std::string& spelling, Work work) {
  return choose(candidates(work), spelling);
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
  Candidates rest{others, "", quick_self_check, candidates().measured_seconds};
  return choose(rest, "auto").device;
}

Device init_backend(BackendPreference preference) {
  return choose(candidates(), backend_of(preference)).device;
}

Device best_available_backend() { return init_backend(BackendPreference::Auto); }

Device init_backend_with_memory_check(BackendPreference preference, uint64_t bytes) {
  return choose(candidates(), backend_of(preference), bytes).device;
}

Device Device::cpu() { return choose_device("cpu").device; }

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
