// Formats a card and its devices for `prism devices`.
#include "cli/card_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "cli/terminal.h"
#include "runtime/capability_switches.h"
#include "runtime/counted_device.h"

namespace prism::cli {
namespace {

constexpr const char* kIndent = "               ";  // aligns with the figures of a way

std::string figures_text(const DeviceInfo& info) {
  const auto figures = measured_figures(info);
  if (!figures) return "not measured (`prism calibrate`)";
  return fmt::format("{}, {} in f32, {} in f16, {} us a launch",
                     rate_text(figures->bandwidth, "B/s"), rate_text(figures->f32_rate, "FLOP/s"),
                     rate_text(figures->f16_rate, "FLOP/s"),
                     number_text(figures->launch_seconds * 1e6));
}

std::string limits_text(DeviceDriver& driver, const DeviceInfo& info) {
  const ir::Capabilities& c = info.capabilities;
  std::string text = fmt::format(
      "{}vendor {}, card {}\n{}dialect {} {}, {} bindings of up to {} bytes, grids of up to {} "
      "groups\n",
      kIndent, info.vendor.empty() ? "unknown" : info.vendor, info.card, kIndent, c.dialect,
      c.dialect_level, c.max_buffers, c.max_binding_bytes, fmt::join(c.max_groups, " x "));
  if (const std::string products = driver.native_products(); !products.empty())
    text += fmt::format("{}products: {}\n", kIndent, products);
  return text;
}

std::string way_text(const std::shared_ptr<DeviceDriver>& driver, const Card& card, bool is_chosen,
                     bool verbose) {
  const DeviceInfo info = Device(driver, "").info();
  const std::string id = fmt::format("{:<10}", info.id);
  std::string text = fmt::format("  {} {} {}\n", is_chosen ? paint(Colour::green, "→") : " ",
                                 paint(Colour::bold, id), figures_text(info));
  std::vector<std::string> what;
  if (info.name != card.name) what.push_back(info.name);
  if (info.software) what.emplace_back("software");
  if (!info.driver.empty()) what.push_back(info.driver);
  if (!what.empty()) text += fmt::format("{}{}\n", kIndent, fmt::join(what, ", "));
  text += fmt::format("{}{}\n", kIndent, fmt::join(describe_capabilities(info.capabilities), ", "));
  return verbose ? text + limits_text(*driver, info) : text;
}

}  // namespace

std::optional<Calibration> measured_figures(const DeviceInfo& info) {
  const auto native = info.is_cpu ? known_native_calibration(info) : std::nullopt;
  return native ? native : known_calibration(info);
}

std::string card_text(const Card& card, const std::string& chosen, bool verbose) {
  // Prefer the native CPU device: an emulated GPU may report a different memory size.
  const auto native =
      std::ranges::find_if(card.ways, [](const auto& way) { return way->info().is_cpu; });
  DeviceDriver& first = native != card.ways.end() ? **native : *card.ways.front();
  const DeviceInfo& info = first.info();
  std::string place;
  if (card.is_processor)
    place = ", the processor";
  else if (!card.address.empty())
    place = " at " + card.address;
  const std::string memory = info.total_bytes == kUnknownBytes
                                 ? "memory size not reported"
                                 : fmt::format("{} ({} free){}", size_text(info.total_bytes),
                                               size_text(first.free_bytes()),
                                               info.unified && !info.is_cpu ? ", unified" : "");
  const std::string units =
      info.compute_units ? fmt::format(", {} compute units", info.compute_units) : "";
  std::string text =
      fmt::format("{}{}: {}{}\n", paint(Colour::bold, card.name), place, memory, units);
  for (const auto& way : card.ways) text += way_text(way, card, way->info().id == chosen, verbose);
  return text;
}

}  // namespace prism::cli
