// `prism devices`: lists every card with its devices and every backend, says why a backend has no
// device, and which device would be used.
#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "cli/card_text.h"
#include "cli/commands.h"
#include "cli/device_json.h"
#include "cli/terminal.h"
#include "prism/device.h"
#include "prism/error.h"
#include "runtime/discovery/cards.h"

namespace prism::cli {
namespace {

struct Options {
  bool json = false;
  bool verbose = false;
};

std::string join_reason(const BackendReport& report) {
  return report.next_step.empty() ? report.reason : report.reason + "; " + report.next_step;
}

// A device with its measured figures, which are null if it was not calibrated.
Json way_json(const DeviceInfo& info) {
  Json measured;
  if (const auto figures = measured_figures(info))
    measured = {{"bandwidth_bytes_per_second", figures->bandwidth},
                {"f32_operations_per_second", figures->f32_rate},
                {"f16_operations_per_second", figures->f16_rate},
                {"launch_seconds", figures->launch_seconds},
                {"host_copy_bytes_per_second", figures->host_copy},
                {"reference_seconds", reference_seconds(*figures, Work::balanced)}};
  return {{"id", info.id}, {"backend", info.backend}, {"measured", measured}};
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
  Json cards = Json::array();
  for (const Card& card : group_by_card(reports)) {
    Json ways = Json::array();
    for (const auto& driver : card.ways) ways.push_back(way_json(driver->info()));
    cards.push_back({{"name", card.name},
                     {"address", card.address},
                     {"processor", card.is_processor},
                     {"ways", ways}});
  }
  Json rejected = Json::array();
  for (const Rejection& one : choice.rejected)
    rejected.push_back({{"id", one.id}, {"reason", one.reason}});
  const Json all = {{"backends", backends},
                    {"cards", cards},
                    {"chosen", choice.device ? Json(choice.device.id()) : Json()},
                    {"why", choice.device ? choice.device.why() : ""},
                    {"rejected", rejected}};
  std::cout << all.dump(2) << "\n";
}

void print_text(const std::vector<BackendReport>& reports, const Choice& choice, bool verbose) {
  const std::string chosen = choice.device ? choice.device.id() : "";
  for (const Card& card : group_by_card(reports))
    std::cout << card_text(card, chosen, verbose) << "\n";
  for (const BackendReport& report : reports) {
    std::vector<std::string> ids;
    for (const auto& driver : report.devices) ids.push_back(driver->info().id);
    std::cout << (report.available ? paint(Colour::green, "✓ ") : paint(Colour::red, "✗ "))
              << report.label << (ids.empty() ? "" : ": ")
              << fmt::format("{}", fmt::join(ids, ", "));
    if (verbose && report.available && !report.found.empty())
      std::cout << " (" << report.found << ")";
    std::cout << "\n";
    if (!report.reason.empty()) std::cout << "    " << join_reason(report) << "\n";
  }
  if (!choice.device) return;
  std::cout << fmt::format("\nChosen: {} ({}): {}\n", paint(Colour::bold, choice.device.id()),
                           choice.device.name(), choice.device.why());
  // A device that is present but fails is shown even without --verbose.
  if (!verbose && std::ranges::none_of(choice.rejected, &Rejection::failed)) return;
  std::cout << "Passed over:\n";
  for (const Rejection& one : choice.rejected)
    if (verbose || one.failed) std::cout << fmt::format("    {}: {}\n", one.id, one.reason);
}

int show_devices(const Options& options) {
  const std::vector<BackendReport>& reports = discover_backends();
  Choice choice;
  std::string problem;
  int status = kRight;
  try {
    choice = choose_device();
  } catch (const Error& error) {  // still show the list, which helps to find the cause
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

void add_devices_command(const Command& program) {
  const Command command =
      program.subcommand("devices", "list every device, and say which would be used and why");
  auto options = std::make_shared<Options>();
  command.flag("--json", options->json, "print JSON");
  command.flag("--verbose,-v", options->verbose,
               "also limits, cards, and why each other device was passed over");
  command.footer(
      "Examples:\n  prism devices\n  prism devices --json | jq .chosen\n  "
      "PRISM_BACKENDS=vulkan,cpu prism devices");
  command.run([options] { return show_devices(*options); });
}

}  // namespace prism::cli
