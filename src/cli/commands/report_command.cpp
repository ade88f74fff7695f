// `prism report`: writes system, devices, reasons, check and calibration as Markdown for a bug
// report.
#include <cstdlib>
#include <iostream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/system/host_memory.h"
#include "base/system/system.h"
#include "base/units.h"
#include "cli/app.h"
#include "cli/card_text.h"
#include "cli/commands.h"
#include "cli/figures.h"
#include "cli/terminal.h"
#include "prism/device.h"
#include "prism/error.h"
#include "runtime/capability_switches.h"
#include "runtime/driver.h"
#include "runtime/measure/self_check.h"

namespace prism::cli {
namespace {

struct Options {
  bool no_check = false;
};

std::string markdown_table(const std::vector<std::string>& heading,
                           const std::vector<std::vector<std::string>>& rows) {
  const auto line = [](const std::vector<std::string>& cells) {
    return fmt::format("| {} |\n", fmt::join(cells, " | "));
  };
  std::string text = line(heading) + line(std::vector<std::string>(heading.size(), "---"));
  for (const auto& row : rows) text += line(row);
  return text + "\n";
}

std::string system_section() {
#if defined(__clang__)
  const std::string compiler = fmt::format("clang {}.{}", __clang_major__, __clang_minor__);
#elif defined(__GNUC__)
  const std::string compiler = fmt::format("g++ {}.{}", __GNUC__, __GNUC_MINOR__);
#else
  const std::string compiler = "another compiler";
#endif
  const HostMemory memory = host_memory();
  std::string text = fmt::format(
      "## System\n\n- Prism {}, built by {}\n- {}\n- {} hardware threads, {} memory, {} "
      "available\n",
      version(), compiler, system_description(), std::thread::hardware_concurrency(),
      size_text(memory.total_bytes), size_text(memory.available_bytes));
  for (const char* name :
       {"PRISM_DEVICE", "PRISM_BACKENDS", "PRISM_DUMP", "PRISM_CHECKED", "PRISM_CACHE_DIR"}) {
    if (const char* value = std::getenv(name)) text += fmt::format("- {}={}\n", name, value);
  }
  return text + "\n";
}

std::string devices_section(const std::vector<BackendReport>& reports) {
  std::vector<std::vector<std::string>> rows, absent;
  std::string capabilities;
  for (const BackendReport& report : reports) {
    if (!report.reason.empty() || !report.available)
      absent.push_back({report.label, report.reason, report.next_step, report.found});
    for (const auto& driver : report.devices) {
      const Device device(driver, "");
      const DeviceInfo& info = device.info();
      rows.push_back({info.id, info.name, size_text(info.total_bytes),
                      size_text(device.free_bytes()), info.driver, info.card, report.found});
      capabilities += fmt::format("- {}: {}\n", info.id,
                                  fmt::join(describe_capabilities(info.capabilities), ", "));
    }
  }
  std::string text =
      "## Devices\n\n" +
      markdown_table({"device", "name", "memory", "free", "driver", "card", "library"}, rows);
  text += capabilities + "\n";
  if (!absent.empty())
    text +=
        "## Not found\n\n" + markdown_table({"backend", "reason", "next step", "library"}, absent);
  return text;
}

std::string choice_section() {
  std::string text = "## Choice\n\n";
  try {
    const Choice choice = choose_device();
    text += fmt::format("{}: {}\n\n", choice.device.id(), choice.device.why());
    for (const Rejection& one : choice.rejected)
      text += fmt::format("- not {}: {}\n", one.id, one.reason);
  } catch (const Error& error) {
    text += error.what();
  }
  return text + "\n";
}

std::string check_section(const std::vector<BackendReport>& reports) {
  std::vector<std::vector<std::string>> rows;
  std::string details;
  for (const BackendReport& report : reports) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "");
      SelfCheckOptions how;
      how.progress = [&](const std::string& kernel) {
        progress(fmt::format("checking {} on {}", kernel, device.id()));
      };
      const SelfCheck check = self_check(device, how);
      std::vector<std::string> row = {device.id()};
      for (const auto outcome : {CheckOutcome::right, CheckOutcome::wrong, CheckOutcome::failed,
                                 CheckOutcome::skipped}) {
        row.push_back(std::to_string(check.count(outcome)));
      }
      row.push_back(fmt::format("{}", fmt::join(check.switched_off, ", ")));
      rows.push_back(row);
      for (const KernelCheck& one : check.kernels) {
        if (!one.detail.empty())
          details += fmt::format("- {} on {} {}: {}\n", one.kernel, device.id(),
                                 outcome_name(one.outcome), one.detail);
      }
    }
  }
  end_progress();
  return "## Check (quick)\n\n" +
         markdown_table({"device", "right", "wrong", "failed", "skipped", "switched off"}, rows) +
         details + "\n";
}

std::string calibration_section(const std::vector<BackendReport>& reports) {
  std::vector<std::vector<std::string>> rows;
  std::string missing;
  for (const BackendReport& report : reports) {
    for (const auto& driver : report.devices) {
      const auto figures = measured_figures(driver->info());
      if (figures)
        rows.push_back(figures_row(Device(driver, ""), *figures));
      else
        missing += fmt::format("- {}: not measured (`prism calibrate`)\n", driver->info().id);
    }
  }
  return "## Calibration\n\n" + (rows.empty() ? "" : markdown_table(figures_heading(), rows)) +
         missing + "\n";
}

// Removes the home folder, and with it the user's name, because reports are pasted in public
// places.
std::string without_personal_paths(std::string text) {
  for (const char* variable : {"HOME", "USERPROFILE"}) {
    const char* value = std::getenv(variable);
    const std::string home = value ? value : "";
    if (home.size() < 2) continue;
    for (size_t at = text.find(home); at != std::string::npos; at = text.find(home, at + 1))
      text.replace(at, home.size(), "~");
  }
  return text;
}

}  // namespace

void add_report_command(const Command& program) {
  const Command command = program.subcommand(
      "report", "system, devices, reasons, check and calibration as Markdown for a bug report");
  auto options = std::make_shared<Options>();
  command.flag("--no-check", options->no_check, "leave out the check, which runs kernels");
  command.footer("Example:\n  prism report > report.md");
  command.run([options] {
    const auto& reports = discover_backends();
    std::string text =
        "# Prism report\n\n" + system_section() + devices_section(reports) + choice_section();
    if (!options->no_check) text += check_section(reports);
    text += calibration_section(reports);
    std::cout << without_personal_paths(text);
    return kRight;
  });
}

}  // namespace prism::cli
