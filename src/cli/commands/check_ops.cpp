// Runs the conformance suite on each device and prints the scores and failures.
#include "cli/commands/check_ops.h"

#include <iostream>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "conformance/suite.h"
#include "runtime/measure/self_check.h"

namespace prism::cli {
namespace {

constexpr size_t kShownFailures = 20;  // for each device; JSON has all

struct DeviceSuite {
  Device device;
  SuiteResult result;
};

double share(size_t part, size_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// "24/24", how many of them ran on the CPU, and the worst error if there is one.
std::string cell_text(const OpOutcome& op) {
  std::string text = fmt::format("{}{}/{}", op.right < op.ran ? "WRONG " : "", op.right, op.ran);
  if (op.fell_back != 0) text += fmt::format(" ({} on cpu)", op.fell_back);
  if (op.worst_nmse > 0) text += fmt::format(" {:.0e}", op.worst_nmse);
  return text;
}

std::string painted(const std::string& cell, const std::string& padded) {
  if (cell.starts_with("WRONG")) return paint(Colour::red, padded);
  if (cell.find("on cpu") != std::string::npos) return paint(Colour::yellow, padded);
  return cell.find('/') != std::string::npos ? paint(Colour::green, padded) : padded;
}

void print_device(const DeviceSuite& one) {
  const SuiteResult& r = one.result;
  std::cout << fmt::format(
      "{} ({}): {} of {} right; {:.0f}% of the suite run ({} of {} cases{}), {:.1f}% of it on the "
      "device itself; {} programs, {:.1f} s\n",
      one.device.id(), one.device.name(), r.right(), r.ran(), share(r.different, r.available),
      r.different, r.available,
      r.ran() > r.different ? fmt::format(", {} more with other inputs", r.ran() - r.different)
                            : "",
      share(r.ran() - r.fell_back(), r.ran()), r.programs, r.seconds);
  bool heading = false;
  for (const OpOutcome& op : r.ops) {
    for (const auto& [reason, cases] : op.fallbacks) {
      if (!std::exchange(heading, true)) std::cout << "  what ran on the CPU, and why:\n";
      std::cout << fmt::format("    {}, {} cases: {}\n", op.op, cases, reason);
    }
  }
  for (size_t i = 0; i < r.wrong.size() && i < kShownFailures; ++i) {
    const CaseResult& each = r.wrong[i];
    std::cout << fmt::format("  {} {} {}: {}\n", paint(Colour::red, "wrong:"), each.op, each.what,
                             each.reason);
  }
  if (r.wrong.size() > kShownFailures)
    std::cout << fmt::format("  and {} more; --json has all\n", r.wrong.size() - kShownFailures);
}

void print_text(const std::vector<DeviceSuite>& all, uint64_t seed, const std::string& op) {
  std::vector<std::string> heading = {"op"};
  std::vector<std::vector<std::string>> rows;
  for (const DeviceSuite& one : all) heading.push_back(one.device.id());
  for (size_t i = 0; i < all.front().result.ops.size(); ++i) {
    std::vector<std::string> row = {all.front().result.ops[i].op};
    for (const DeviceSuite& one : all) row.push_back(cell_text(one.result.ops[i]));
    rows.push_back(row);
  }
  std::cout << table(heading, rows, painted);
  std::cout << "right/run, then the worst normalised mean square error\n\n";
  for (const DeviceSuite& one : all) print_device(one);
  std::cout << fmt::format("seed {}: `prism check {} --seed {}` repeats this\n", seed,
                           op.empty() ? "--ops" : "--op " + op, seed);
}

Json device_json(const DeviceSuite& one) {
  const SuiteResult& r = one.result;
  Json ops = Json::array(), wrong = Json::array();
  for (const OpOutcome& op : r.ops) {
    ops.push_back({{"op", op.op},
                   {"family", op.family},
                   {"ran", op.ran},
                   {"right", op.right},
                   {"gradients", op.gradients},
                   {"on_cpu", op.fell_back},
                   {"why_on_cpu", op.fallbacks},
                   {"worst_nmse", op.worst_nmse},
                   {"types", op.types}});
  }
  for (const CaseResult& each : r.wrong)
    wrong.push_back({{"op", each.op}, {"case", each.what}, {"reason", each.reason}});
  const DeviceInfo& info = one.device.info();
  return {{"id", info.id},
          {"name", info.name},
          {"driver", info.driver},
          {"software", info.software},
          {"ran", r.ran()},
          {"right", r.right()},
          {"on_cpu", r.fell_back()},
          {"available", r.available},
          {"different", r.different},
          {"programs", r.programs},
          {"seconds", r.seconds},
          {"ops", ops},
          {"wrong", wrong},
          {"drawn", r.drawn}};
}

}  // namespace

int check_ops(const CheckOpsOptions& options) {
  SuiteOptions how;
  how.seed = options.seed.value_or(std::random_device{}());
  how.op = options.op;
  how.cases = options.cases;
  std::vector<DeviceSuite> all;
  bool right = true;
  for (const Device& device : devices_named(options.device)) {
    apply_known_self_check(device);  // check with the capabilities that will be used
    how.progress = [&](const SuiteProgress& at) {
      progress(fmt::format("{} of {} cases on {} ({}): {}", at.done, at.of, device.id(),
                           device.name(), at.op));
    };
    all.push_back({device, run_suite(device, how)});
    right = right && all.back().result.wrong.empty();
  }
  end_progress();
  if (options.json) {
    Json devices = Json::array();
    for (const DeviceSuite& one : all) devices.push_back(device_json(one));
    std::cout << Json{{"right", right}, {"seed", how.seed}, {"devices", devices}}.dump(1) << "\n";
  } else {
    print_text(all, how.seed, how.op);
  }
  return right ? kRight : kFailed;
}

}  // namespace prism::cli
