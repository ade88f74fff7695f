// Row ops on one device: time and bandwidth, against the device's copy in the same run.
//
// usage: row_ops_bench [--device D] [--quick]
#include <functional>
#include <iostream>

#include <fmt/format.h>

#include "prism/device.h"
#include "prism/error.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/norm.h"
#include "prism/ops/reduce.h"
#include "prism/ops/scan.h"
#include "prism/ops/softmax.h"
#include "prism/ops/sort.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_kernels.h"
#include "tensor/plan/plan.h"

namespace prism::bench {
namespace {

double copy_rate(const Device& device, uint64_t bytes) {
  const Buffer from = device.allocate(bytes), to = device.allocate(bytes);
  const Program program = device.compile(kernels::copy_words());
  const auto count = static_cast<uint32_t>(bytes / 16);
  Queue& queue = device.queue();
  const double seconds = seconds_each(queue, [&] {
    queue.launch(program, (count + 255) / 256, {from, to}, {count});
  });
  return 2.0 * static_cast<double>(bytes) / seconds;
}

struct Row {
  const char* name;
  std::function<Tensor(const Tensor&)> make;
  bool writes;  // writes as many elements as it reads
};

void time_rows(const Device& device, double copied, int64_t rows, int64_t length, DType type) {
  const Tensor x = cast(uniform({rows, length}, 1, -1, 1, DType::f32, device), type).eval();
  const Tensor weight = full({length}, 1.5, DType::f32, device).eval();
  const std::vector<Row> all = {
      {"rms_norm", [&](const Tensor& t) { return rms_norm(t, weight); }, true},
      {"layer_norm", [&](const Tensor& t) { return layer_norm(t, weight, weight); }, true},
      {"softmax", [](const Tensor& t) { return softmax(t); }, true},
      {"log_softmax", [](const Tensor& t) { return log_softmax(t); }, true},
      {"sum rows", [](const Tensor& t) { return sum(t, {1}); }, false},
      {"sum columns", [](const Tensor& t) { return sum(t, {0}); }, false},
      {"sum all", [](const Tensor& t) { return sum(t); }, false},
      {"argmax rows", [](const Tensor& t) { return argmax(t, 1); }, false},
      {"cumsum", [](const Tensor& t) { return cumsum(t); }, true},
      {"top_k 40", [](const Tensor& t) { return top_k(t, 40).values; }, false},
  };
  for (const Row& each : all) {
    const Tensor y = each.make(x);
    const Tensor outputs[] = {y};
    Plan plan(outputs);
    const double seconds = seconds_each(device.queue(), [&] { plan.run(); });
    const double bytes = static_cast<double>(rows * length * (each.writes ? 2 : 1)) *
                         static_cast<double>(dtype_bytes(type));
    fmt::print("  {:<12} {} x {} {:<5} {:>9.3f} ms {:>7.0f} GB/s {:>5.0f}% of copy\n", each.name,
               rows, length, dtype_name(type), seconds * 1e3, bytes / seconds / 1e9,
               100 * bytes / seconds / copied);
  }
}

int run(int count, char** arguments) {
  std::string name = "auto";
  bool quick = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--device" && i + 1 < count)
      name = arguments[++i];
    else if (word == "--quick")
      quick = true;
    else
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("row_ops_bench: unknown option {}; valid options: --device D, --quick",
                      word));
  }
  const Device device = Device::named(name);
  if (quick) {
    time_rows(device, copy_rate(device, 1 << 20), 16, 1024, DType::f32);
    return 0;
  }
  const double copied = copy_rate(device, 1ull << 29);
  fmt::print("{} ({}): copy {:.0f} GB/s\n", device.name(), device.id(), copied / 1e9);
  for (const auto& [rows, length] : {std::pair<int64_t, int64_t>{1 << 20, 128},
                                     {32768, 4096},
                                     {16384, 8192},
                                     {2048, 32000},
                                     {1, 4096},
                                     {1, 151936}})
    for (const DType type : {DType::f32, DType::f16}) time_rows(device, copied, rows, length, type);
  return 0;
}

}  // namespace
}  // namespace prism::bench

int main(int count, char** arguments) {
  try {
    return prism::bench::run(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
