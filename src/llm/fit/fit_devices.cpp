// Selects the devices that a model may be spread over.
#include "llm/fit/fit_devices.h"

#include <algorithm>

#include "llm/fit/expected_speed.h"
#include "prism/device.h"
#include "runtime/measure/calibrate.h"
#include "runtime/measure/self_check.h"
#include "tensor/storage.h"

namespace prism::llm {

std::string memory_name(const Device& device) {
  const DeviceInfo& info = device.info();
  return info.is_cpu || info.unified || info.software ? kHostMemoryName : info.card;
}

FitDevice fit_device(const Device& device) {
  const DeviceInfo& info = device.info();
  FitDevice out;
  out.device = device;
  out.free_bytes = device.free_bytes();
  out.total_bytes = info.total_bytes;
  out.memory = memory_name(device);
  if (info.is_cpu) {
    // A KV cache that is not filled yet counts as free for the system.
    out.free_bytes =
        std::min(out.free_bytes,
                 info.total_bytes - std::min(info.total_bytes, memory_stats(device).in_use_bytes));
    if (const auto speed = known_host_speed(device)) {
      out.bandwidth = speed->bandwidth;
      out.f16_rate = speed->f16_rate;
      out.quantised_rate = speed->quantised_rate;
    }
  } else if (const auto measured = known_calibration(info)) {
    out.bandwidth = measured->bandwidth;
    out.f16_rate = std::max(measured->f16_rate, measured->f32_rate);
  }
  return out;
}

std::vector<FitDevice> fit_devices(const FitOptions& options, bool is_first_enough) {
  if (options.gpu_layers == 0) return {fit_device(Device::cpu())};
  const Device chosen = choose_device(options.device, Work::bandwidth).device;
  const bool is_named = !chosen.is_automatic();
  std::vector<FitDevice> devices = {fit_device(chosen)};
  if (chosen.info().is_cpu || is_first_enough) return devices;
  if (!is_named) {
    std::vector<Device> others;
    std::vector<std::string> cards = {chosen.info().card};
    for (const BackendReport& report : discover_backends())
      for (const auto& driver : report.devices) {
        others.push_back(Device(driver, "one of several, because the model is too large for one")
                             .as_automatic());
        // A card with a failed device is not trusted through any backend.
        if (others.back().is_given_up()) cards.push_back(others.back().info().card);
      }
    for (const Device& device : others) {
      const DeviceInfo& info = device.info();
      if (info.is_cpu || info.software || std::ranges::find(cards, info.card) != cards.end())
        continue;
      if (!quick_self_check(device).empty()) continue;
      cards.push_back(info.card);
      devices.push_back(fit_device(device));
    }
    std::stable_sort(devices.begin() + 1, devices.end(), [](const auto& a, const auto& b) {
      return std::pair(a.bandwidth, a.free_bytes) > std::pair(b.bandwidth, b.free_bytes);
    });
  }
  if (!is_named || options.gpu_layers || options.cpu_experts)
    devices.push_back(fit_device(Device::cpu()));
  return devices;
}

}  // namespace prism::llm
