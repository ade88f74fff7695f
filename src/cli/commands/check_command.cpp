// `prism check`: compares every kernel, or with --ops every op, with its reference on each device.
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/commands/check_ops.h"
#include "cli/terminal.h"
#include "prism/error.h"
#include "runtime/measure/self_check.h"

namespace prism::cli {
namespace {

struct Options {
  std::string device = "all";
  std::vector<std::string> kernels;
  std::optional<uint64_t> seed;
  bool quick = false;
  bool json = false;
  bool ops = false;
  std::string op;
  std::optional<uint64_t> cases;
};

struct DeviceCheck {
  Device device;
  SelfCheck check;
};

std::string cell_text(const KernelCheck& result) {
  switch (result.outcome) {
    case CheckOutcome::right:
      return result.skipped_cases ? fmt::format("right ({} skipped)", result.skipped_cases)
                                  : "right";
    case CheckOutcome::wrong:
      return "WRONG";
    case CheckOutcome::failed:
      return "FAILED";
    case CheckOutcome::skipped:
      return "skipped";
  }
  return "";
}

std::string painted(const std::string& cell, const std::string& padded) {
  if (cell == "WRONG" || cell == "FAILED") return paint(Colour::red, padded);
  if (cell.starts_with("right")) return paint(Colour::green, padded);
  return cell == "skipped" ? paint(Colour::yellow, padded) : padded;
}

void print_text(const std::vector<DeviceCheck>& checks) {
  std::vector<std::string> heading = {"kernel"};
  std::vector<std::vector<std::string>> rows;
  for (const DeviceCheck& one : checks) heading.push_back(one.device.id());
  for (size_t k = 0; k < checks.front().check.kernels.size(); ++k) {
    std::vector<std::string> row = {checks.front().check.kernels[k].kernel};
    for (const DeviceCheck& one : checks) row.push_back(cell_text(one.check.kernels[k]));
    rows.push_back(row);
  }
  std::cout << table(heading, rows, painted) << "\n";
  for (const DeviceCheck& one : checks) {
    const SelfCheck& c = one.check;
    std::cout << fmt::format("{} ({}): {} right, {} wrong, {} failed, {} skipped\n",
                             one.device.id(), one.device.name(), c.count(CheckOutcome::right),
                             c.count(CheckOutcome::wrong), c.count(CheckOutcome::failed),
                             c.count(CheckOutcome::skipped));
    if (!c.switched_off.empty()) {
      std::cout << fmt::format("  switched off, because kernels were wrong with it: {}\n",
                               fmt::join(c.switched_off, ", "));
    }
    for (const KernelCheck& kernel : c.kernels) {
      if (!kernel.detail.empty())
        std::cout << fmt::format("  {} {}: {}\n", kernel.kernel, outcome_name(kernel.outcome),
                                 kernel.detail);
    }
  }
}

void print_json(const std::vector<DeviceCheck>& checks, bool right) {
  Json devices = Json::array();
  for (const DeviceCheck& one : checks) {
    Json kernels = Json::array();
    for (const KernelCheck& kernel : one.check.kernels) {
      kernels.push_back({{"kernel", kernel.kernel},
                         {"outcome", outcome_name(kernel.outcome)},
                         {"detail", kernel.detail},
                         {"cases", kernel.cases},
                         {"skipped_cases", kernel.skipped_cases},
                         {"ms", kernel.ms}});
    }
    devices.push_back({{"id", one.device.id()},
                       {"name", one.device.name()},
                       {"right", one.check.count(CheckOutcome::right)},
                       {"wrong", one.check.count(CheckOutcome::wrong)},
                       {"failed", one.check.count(CheckOutcome::failed)},
                       {"skipped", one.check.count(CheckOutcome::skipped)},
                       {"switched_off", one.check.switched_off},
                       {"kernels", kernels}});
  }
  std::cout << Json{{"right", right}, {"devices", devices}}.dump(2) << "\n";
}

int check(const Options& options) {
  if (options.ops || !options.op.empty()) {
    if (!options.kernels.empty())
      throw Error(ErrorCode::kInvalidArgument,
                  "check: --kernel and --ops select different suites; give only one of them");
    return check_ops({options.device, options.op, options.seed, options.cases, options.json});
  }
  std::vector<std::string> kernels;
  for (const std::string& name : options.kernels) kernels.push_back(kernel_named(name).name);
  std::vector<DeviceCheck> checks;
  bool right = true;
  for (const Device& device : devices_named(options.device)) {
    SelfCheckOptions how;
    how.quick = options.quick;
    how.seed = options.seed.value_or(1);
    how.kernels = kernels;
    how.progress = [&](const std::string& kernel) {
      progress(fmt::format("checking {} on {} ({})", kernel, device.id(), device.name()));
    };
    checks.push_back({device, self_check(device, how)});
    right = right && checks.back().check.right();
  }
  end_progress();
  if (options.json)
    print_json(checks, right);
  else
    print_text(checks);
  return right ? kRight : kFailed;
}

}  // namespace

void add_check_command(const Command& program) {
  const Command command = program.subcommand(
      "check", "compare every kernel or op on every device with float64 references");
  auto options = std::make_shared<Options>();
  command
      .option("-d,--device", options->device,
              "all, auto, cpu, gpu, a backend, or one device such as vulkan:0")
      .shows_default();
  command.option("-k,--kernel", options->kernels, "only this kernel; may be given several times");
  command.flag("--ops", options->ops,
               "check the tensor ops and their gradients instead of kernels");
  command.option("-o,--op", options->op, "only this op (implies --ops)");
  command.option("--cases", options->cases,
                 "cases of ops on each device; 0 is all (default: all on the CPU, 3000 elsewhere)");
  command.option("--seed", options->seed,
                 "the seed of the random inputs (default: 1 for kernels, random for ops)");
  command.flag("--quick", options->quick, "small sizes only");
  command.flag("--json", options->json, "print JSON");
  command.footer(
      "The exit status is 1 if a result is wrong or fails. Skipped cases and ops that a device "
      "leaves to the CPU are counted and shown.\n"
      "Examples:\n  prism check\n  prism check --device vulkan:0 --quick\n  prism check --kernel "
      "sum_rows --json\n  prism check --ops --device vulkan:0\n  prism check --op sum --cases 0");
  command.run([options] { return check(*options); });
}

}  // namespace prism::cli
