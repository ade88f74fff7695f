// `prism calibrate`: measures devices, so that Prism can choose the fastest.
#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/figures.h"
#include "cli/terminal.h"
#include "ops/bench/op_bench.h"
#include "ops/bench/tune.h"
#include "prism/error.h"
#include "runtime/measure/calibrate.h"
#include "runtime/measure/self_check.h"

namespace prism::cli {
namespace {

struct Options {
  std::string device = "all";
  bool json = false;
  bool tune = false;
};

struct Measured {
  Device device;
  std::optional<Calibration> figures;
  std::string problem;
  std::vector<TunedProduct> tuned;
};

void print_json(const std::vector<Measured>& all) {
  Json devices = Json::array();
  for (const Measured& one : all) {
    Json entry = {{"id", one.device.id()}, {"name", one.device.name()}};
    if (one.figures) {
      entry["bandwidth_bytes_per_second"] = one.figures->bandwidth;
      entry["f32_operations_per_second"] = one.figures->f32_rate;
      entry["f16_operations_per_second"] = one.figures->f16_rate;
      entry["launch_seconds"] = one.figures->launch_seconds;
      entry["host_copy_bytes_per_second"] = one.figures->host_copy;
      entry["reference_seconds"] = reference_seconds(*one.figures, Work::balanced);
      for (const TunedProduct& product : one.tuned) {
        entry["tuned"].push_back({{"product", product.what},
                                  {"way", product.best},
                                  {"seconds", product.best_seconds},
                                  {"before", product.before},
                                  {"before_seconds", product.before_seconds}});
      }
    } else {
      entry["error"] = one.problem;
    }
    devices.push_back(entry);
  }
  std::cout << Json{{"devices", devices}}.dump(2) << "\n";
}

void print_tuned(const Measured& one) {
  if (one.tuned.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const TunedProduct& product : one.tuned) {
    rows.push_back({one.device.id(), product.what, product.best,
                    fmt::format("{:.3f}", product.best_seconds * 1e3),
                    product.best == product.before
                        ? ""
                        : fmt::format("{} {:.3f}", product.before, product.before_seconds * 1e3)});
  }
  std::cout << "\n" << table({"device", "product", "way", "ms", "instead of"}, rows);
}

int run_calibrate(const Options& options) {
  std::vector<Measured> all;
  bool right = true;
  for (const Device& device : devices_named(options.device)) {
    Measured one{device, std::nullopt, "", {}};
    apply_known_self_check(device);  // measure with the capabilities that will be used
    try {
      one.figures = calibrate(device, progress);
      // For the CPU, show the figures of its native kernels, as every command does.
      if (device.info().is_cpu) one.figures = native_calibration(measured_peaks(device, progress));
      if (options.tune) one.tuned = tune_products(device, progress);
    } catch (const Error& error) {
      one.problem = error.what();
      right = false;
    }
    all.push_back(one);
  }
  end_progress();
  if (options.json) {
    print_json(all);
  } else {
    std::vector<std::vector<std::string>> rows;
    for (const Measured& one : all) {
      if (one.figures) rows.push_back(figures_row(one.device, *one.figures));
    }
    std::cout << table(figures_heading(), rows);
    for (const Measured& one : all) print_tuned(one);
  }
  for (const Measured& one : all) {
    if (!one.problem.empty())
      std::cerr << paint(Colour::red, "error: ", Stream::error) << one.device.id() << ": "
                << one.problem << "\n";
  }
  return right ? kRight : kFailed;
}

}  // namespace

std::vector<std::string> figures_heading() {
  return {"device",    "memory GB/s",    "f32 GFLOP/s", "f16 GFLOP/s",
          "launch us", "host copy GB/s", "name"};
}

std::vector<std::string> figures_row(const Device& device, const Calibration& figures) {
  return {device.id(),
          number_text(figures.bandwidth * 1e-9),
          number_text(figures.f32_rate * 1e-9),
          number_text(figures.f16_rate * 1e-9),
          number_text(figures.launch_seconds * 1e6),
          number_text(figures.host_copy * 1e-9),
          device.name()};
}

void add_calibrate_command(const Command& program) {
  const Command command = program.subcommand(
      "calibrate", "measure devices for a second or two each; the fastest is then chosen");
  auto options = std::make_shared<Options>();
  command
      .option("--device,-d", options->device,
              "all, auto, cpu, gpu, a backend, or one device such as vulkan:0")
      .shows_default();
  command.flag("--tune", options->tune,
               "also measure which kernel is fastest for each product, and use it from then on");
  command.flag("--json", options->json, "print JSON");
  command.footer(
      "The figures are kept in the cache folder for each device and driver.\nExamples:\n  prism "
      "calibrate\n  prism calibrate --device vulkan:0 --json\n  prism calibrate --device cuda:0 "
      "--tune");
  command.run([options] { return run_calibrate(*options); });
}

}  // namespace prism::cli
