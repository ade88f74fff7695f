// `prism bench ops`: times each op on a device and compares it with the device's peaks.
#include <algorithm>
#include <ctime>
#include <iostream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json.h"
#include "base/suggest.h"
#include "base/system/output_file.h"
#include "base/units.h"
#include "cli/bench_chart.h"
#include "cli/bench_text.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "prism/error.h"
#include "runtime/measure/self_check.h"

namespace prism::cli {
namespace {

struct Options {
  std::string device = "auto";
  std::string op;
  std::string svg;
  bool json = false;
};

std::vector<BenchCase> chosen_cases(const Device& device, const std::string& op) {
  std::vector<BenchCase> cases = bench_cases(device);
  if (op.empty()) return cases;
  std::vector<std::string> names;
  for (const BenchCase& each : cases)
    if (std::ranges::find(names, each.op) == names.end()) names.push_back(each.op);
  std::erase_if(cases, [&](const BenchCase& each) { return each.op != op; });
  if (cases.empty())
    throw Error(ErrorCode::kNotFound,
                fmt::format("\"{}\" is no op that is timed{}", op, valid_names(op, names)));
  return cases;
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr))); }

void print_text(const Device& device, const DevicePeaks& peaks,
                const std::vector<BenchResult>& results) {
  std::vector<std::vector<std::string>> rows;
  for (const BenchResult& each : results) {
    if (!each.problem.empty()) {
      rows.push_back({each.op, each.what, "-", "-", "-", "-", each.problem});
      continue;
    }
    rows.push_back({each.op, each.what, number_text(each.seconds * 1e6),
                    number_text(each.bytes_rate * 1e-9),
                    each.flops_rate > 0 ? number_text(each.flops_rate * 1e-9) : "-",
                    share_text(each), each.elsewhere});
  }
  std::cout << device.id() << " (" << device.name() << "), " << peaks_text(peaks) << "\n";
  std::cout << table({"op", "shape", "us", "GB/s", "GFLOP/s", "share", ""}, rows);
}

void print_json(const Device& device, const DevicePeaks& peaks,
                const std::vector<BenchResult>& results) {
  Json ops = Json::array();
  for (const BenchResult& each : results) {
    Json entry = {{"op", each.op}, {"shape", each.what}};
    if (!each.problem.empty()) {
      entry["error"] = each.problem;
    } else {
      entry["seconds"] = each.seconds;
      entry["bytes_per_second"] = each.bytes_rate;
      entry["operations_per_second"] = each.flops_rate;
      entry["share"] = each.in_cache ? Json(nullptr) : Json(each.share);
      entry["in_cache"] = each.in_cache;
      entry["share_of"] = limit_name(each.limit);
      entry["on_cpu_because"] = each.elsewhere;
    }
    ops.push_back(entry);
  }
  std::cout << Json{{"device", device.id()},
                    {"name", device.name()},
                    {"date", today()},
                    {"peaks",
                     {{"bandwidth_bytes_per_second", peaks.bandwidth},
                      {"f32_operations_per_second", peaks.f32_rate},
                      {"f16_operations_per_second", peaks.f16_rate}}},
                    {"ops", ops}}
                   .dump(2)
            << "\n";
}

int bench_ops(const Options& options) {
  const Device device = Device::named(options.device);
  apply_known_self_check(device);
  const std::vector<BenchCase> cases = chosen_cases(device, options.op);
  DevicePeaks peaks = measured_peaks(device, progress);
  std::vector<BenchResult> results;
  for (const BenchCase& each : cases) {
    progress(fmt::format("timing {} {} on {}", each.op, each.what, device.id()));
    results.push_back(run_bench(each, device));
  }
  set_shares(results, peaks);
  end_progress();
  if (options.json)
    print_json(device, peaks, results);
  else
    print_text(device, peaks, results);
  if (!options.svg.empty()) {
    write_whole_file(options.svg,
                     bench_chart({fmt::format("Ops on {} ({})", device.name(), device.id()),
                                  fmt::format("{}; {}", today(), peaks_text(peaks))},
                                 results));
  }
  const bool ran = std::ranges::all_of(results, [](const auto& r) { return r.problem.empty(); });
  return ran ? kRight : kFailed;
}

}  // namespace

void add_bench_command(const Command& program) {
  const Command bench = program.subcommand("bench", "time a model, or what a device does");
  add_bench_model_command(bench);
  const Command command = bench.subcommand(
      "ops", "time each op as a replayed plan: GB/s, GFLOP/s, share of the measured peak");
  auto options = std::make_shared<Options>();
  command
      .option("--device,-d", options->device,
              "auto, cpu, gpu, a backend, or one device such as vulkan:0")
      .shows_default();
  command.option("--op,-o", options->op, "only this op");
  command.option("--svg", options->svg, "write a bar chart to this file");
  command.flag("--json", options->json, "print JSON");
  command.footer(
      "The share is of what the device could reach first: its memory's bandwidth or its rate of "
      "products, the best of `prism calibrate` and of this run. \"in cache\": too small to be read "
      "from memory, so its bandwidth is no limit.\n"
      "Examples:\n  prism bench ops\n  prism bench ops --device cpu --op sum\n  prism bench ops "
      "--device cuda:0 --svg ops.svg");
  command.run([options] { return bench_ops(*options); });
}

}  // namespace prism::cli
