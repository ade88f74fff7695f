// `prism devices`: every backend, every device, every absence with its reason, and which device
// would be used.
#include <iostream>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "runtime/capability_switches.h"
#include "runtime/discovery.h"

namespace prism::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  bool json = false;
  bool verbose = false;
};

std::string join_reason(const BackendReport& report) {
  return report.next_step.empty() ? report.reason : report.reason + "; " + report.next_step;
}

void print_json(const std::vector<BackendReport>& reports, const Choice& choice) {
  Json backends = Json::array();
  for (const BackendReport& report : reports) {
    Json devices = Json::array();
    for (const auto& driver : report.devices)
      devices.push_back(device_json(*driver, Device(driver, "").info()));
    backends.push_back({{"name", report.name},
                        {"label", report.label},
                        {"available", report.available},
                        {"reason", report.reason},
                        {"next_step", report.next_step},
                        {"found", report.found},
                        {"devices", devices}});
  }
  Json rejected = Json::array();
  for (const Rejection& one : choice.rejected)
    rejected.push_back({{"id", one.id}, {"reason", one.reason}});
  const Json all = {{"backends", backends},
                    {"chosen", choice.device ? Json(choice.device.id()) : Json()},
                    {"why", choice.device ? choice.device.why() : ""},
                    {"rejected", rejected}};
  std::cout << all.dump(2) << "\n";
}

void print_device(const std::shared_ptr<DeviceDriver>& driver, bool verbose,
                  const std::string& same_card) {
  const Device device(driver, "");
  const DeviceInfo& info = device.info();
  std::string memory =
      fmt::format("{} ({} free)", gigabytes(info.total_bytes), gigabytes(device.free_bytes()));
  if (info.unified && !info.is_cpu) memory += ", unified";
  std::cout << fmt::format("    {}  {}{}\n", paint(Colour::bold, info.id), info.name,
                           info.software ? " (software)" : "");
  std::cout << fmt::format("        {}, {} compute units{}\n", memory, info.compute_units,
                           info.driver.empty() ? "" : ", " + info.driver);
  std::cout << fmt::format("        {}\n",
                           fmt::join(describe_capabilities(info.capabilities), ", "));
  if (!same_card.empty()) std::cout << "        the same card as " << same_card << "\n";
  if (!verbose) return;
  const ir::Capabilities& c = info.capabilities;
  std::cout << fmt::format("        vendor {}, card {}\n",
                           info.vendor.empty() ? "unknown" : info.vendor, info.card);
  std::cout << fmt::format(
      "        dialect {} {}, {} bindings of up to {} bytes, grids of up to {} groups\n", c.dialect,
      c.dialect_level, c.max_buffers, c.max_binding_bytes, fmt::join(c.max_groups, " x "));
  if (const std::string products = driver->native_products(); !products.empty())
    std::cout << fmt::format("        products: {}\n", products);
}

void print_text(const std::vector<BackendReport>& reports, const Choice& choice, bool verbose) {
  std::map<std::string, std::string> first_of_card;
  for (const BackendReport& report : reports) {
    std::cout << (report.available ? paint(Colour::green, "✓ ") : paint(Colour::red, "✗ "))
              << report.label;
    if (verbose && report.available && !report.found.empty())
      std::cout << " (" << report.found << ")";
    std::cout << "\n";
    for (const auto& driver : report.devices) {
      const auto [first, fresh] = first_of_card.try_emplace(driver->info().card, driver->info().id);
      print_device(driver, verbose, fresh ? "" : first->second);
    }
    if (!report.reason.empty()) std::cout << "    " << join_reason(report) << "\n";
  }
  if (!choice.device) return;
  std::cout << fmt::format("\nChosen: {} ({}): {}\n", paint(Colour::bold, choice.device.id()),
                           choice.device.name(), choice.device.why());
  if (!verbose) return;
  std::cout << "Passed over:\n";
  for (const Rejection& one : choice.rejected)
    std::cout << fmt::format("    {}: {}\n", one.id, one.reason);
}

int show_devices(const Options& options) {
  const std::vector<BackendReport>& reports = discover_backends();
  Choice choice;
  std::string problem;
  int status = kRight;
  try {
    choice = choose_device();
  } catch (const Error& error) {  // the list is still wanted, most of all then
    problem = error.what();
    status = kWrongCall;
  }
  if (options.json)
    print_json(reports, choice);
  else
    print_text(reports, choice, options.verbose);
  if (!problem.empty())
    std::cerr << paint(Colour::red, "error: ", Stream::error) << problem << "\n";
  return status;
}

}  // namespace

void add_devices_command(CLI::App& app, int* status) {
  CLI::App* command =
      app.add_subcommand("devices", "list every device, and say which would be used and why");
  auto options = std::make_shared<Options>();
  command->add_flag("--json", options->json, "print JSON");
  command->add_flag("--verbose,-v", options->verbose,
                    "also limits, cards, and why each other device was passed over");
  command->footer(
      "Examples:\n  prism devices\n  prism devices --json | jq .chosen\n  "
      "PRISM_BACKENDS=vulkan,cpu prism devices");
  command->callback([options, status] { *status = show_devices(*options); });
}

}  // namespace prism::cli
