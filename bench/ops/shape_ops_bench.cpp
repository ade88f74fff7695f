// Shape and index ops on one device: time and bandwidth, against a plain copy in the same run.
//
// usage: shape_ops_bench [DEVICE] [MEGABYTES]   (auto; 256 of each operand)
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>

#include "prism/device.h"
#include "prism/ops/conv.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/index.h"
#include "prism/ops/join.h"
#include "prism/ops/rope.h"
#include "tensor/plan/plan.h"

namespace prism::bench {
namespace {

// Seconds per run of the plan that computes y, replayed.
double seconds_of(const Tensor& y) {
  const Tensor outputs[] = {y};
  Plan plan(outputs);
  const auto wait = [&] {
    if (!y.device().info().is_cpu) y.device().queue().wait();
  };
  for (int i = 0; i < 3; ++i) plan.run();  // compiled, recorded, warm
  wait();
  constexpr int kRuns = 20;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) plan.run();
  wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kRuns;
}

void line(const std::string& what, const Tensor& y, double bytes, double operations = 0) {
  const double seconds = seconds_of(y);
  std::cout << fmt::format("{:<42} {:9.1f} us {:8.1f} GB/s", what, seconds * 1e6,
                           bytes / seconds / 1e9);
  if (operations > 0) std::cout << fmt::format(" {:8.2f} TFLOP/s", operations / seconds / 1e12);
  std::cout << std::endl;
}

Tensor made(const Shape& shape, DType type, const Device& device) {
  Tensor x = uniform(shape, 1, -1, 1, type, device);
  x.eval();
  return x;
}

Tensor numbers(int64_t count, int64_t below, const Device& device) {
  std::vector<int32_t> values;
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(below)));
  }
  return from_vector(values, {count}, device);
}

int run(int count, char** arguments) {
  const Device device = Device::named(count > 1 ? arguments[1] : "auto");
  const int64_t megabytes = count > 2 ? std::atoll(arguments[2]) : 256;
  constexpr int64_t kColumns = 4096;
  for (const DType type : {DType::f32, DType::f16}) {
    const auto bytes_each = static_cast<int64_t>(ElementType(type).block_bytes());
    const int64_t rows = (megabytes << 20) / (kColumns * bytes_each);
    const double bytes = static_cast<double>(rows * kColumns * bytes_each);
    const std::string name = ElementType(type).name();
    const Tensor x = made({rows, kColumns}, type, device);
    line(name + " copy (x + 1)", x + 1.0, 2 * bytes);
    line(name + " transposed copy", x.transpose().contiguous(), 2 * bytes);
    line(name + " concat of two", concat({x, x}, 1), 4 * bytes);
    line(name + " pad by 8 columns", pad(x, {{8, 8}}), 2 * bytes);
    line(name + " roll by 1 row", roll(x, 1, 0), 2 * bytes);
    line(name + " gather_rows, shuffled", gather_rows(x, numbers(rows, rows, device)), 2 * bytes);
    line(name + " scatter_rows, shuffled", scatter_rows(x, numbers(rows, rows, device), x),
         4 * bytes);
    const int64_t few = std::min<int64_t>(rows, 2048);
    const Tensor part = x.slice(0, 0, few);
    line(name + fmt::format(" scatter_add_rows, {} to 1,000", few),
         scatter_add_rows(made({1000, kColumns}, type, device), numbers(few, 1000, device), part),
         static_cast<double>((few + 2000) * kColumns * bytes_each));
    line(name + " swiglu of halves", swiglu(x), 1.5 * bytes);
    line(name + " uniform", uniform({rows, kColumns}, 3, 0, 1, type, device), bytes);
    line(name + " normal", normal({rows, kColumns}, 3, 0, 1, type, device), bytes);
    line(name + " dropout", dropout(x, 0.1, 5), 2 * bytes);
    const Tensor heads = x.reshape({rows, kColumns / 128, 128});
    std::vector<float> frequencies;
    for (int i = 0; i < 64; ++i) frequencies.push_back(1.0f / static_cast<float>(i + 1));
    const Tensor table = from_vector(frequencies, {64}, device);
    line(name + " rope, heads of 128", rope(heads, numbers(rows, 100000, device), table),
         2 * bytes);
    const Tensor image = made({16, 64, 56, 56}, type, device);
    const Tensor weight = made({64, 64, 3, 3}, type, device);
    Conv2dOptions same;
    same.padding_y = same.padding_x = 1;
    const double products = 2.0 * 16 * 64 * 56 * 56 * 64 * 9;
    line(name + " conv2d [16, 64, 56, 56] by 3 x 3", conv2d(image, weight, same),
         2.0 * static_cast<double>(image.elements() * bytes_each), products);
    line(name + " max_pool2d of it", max_pool2d(image),
         1.25 * static_cast<double>(image.elements() * bytes_each));
  }
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
