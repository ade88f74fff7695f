// Times exact search over a matrix of random rows on one device, and compares the rows it finds
// with the CPU's.
//
// usage: bench_search [--device cuda:0] [--rows 1000000] [--width 768] [--type f16]
//                     [--metric dot] [--queries 1,64,1024] [--query-type f32] [-k 10]
//                     [--file rows.npy] [--made host]
//
// Prints one line for each number of queries: milliseconds for the batch (the best of the runs),
// queries per second, bytes of rows per second, and the share of equal rows. --file takes the rows
// from a file, so that another program can search the same ones. --made device makes them there, a
// part at a time, which is faster for a large matrix; nothing is compared then.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "bench_options.h"
#include "prism/compile.h"
#include "prism/error.h"
#include "prism/io.h"
#include "prism/ops.h"

namespace prism {
namespace {

using Clock = std::chrono::steady_clock;

double best_ms(const std::function<void()>& run) {
  run();  // plans and compiles
  double best = 1e30;
  const auto start = Clock::now();
  for (int i = 0; i < 50 && (i < 3 || Clock::now() - start < std::chrono::seconds(3)); ++i) {
    const auto before = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - before).count());
  }
  return best;
}

double share_equal(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  size_t equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return a.empty() ? 1 : static_cast<double>(equal) / static_cast<double>(a.size());
}

// Random rows in parts: all of them in f32 may not fit.
Tensor made_on(const Device& device, int64_t rows, int64_t width, DType type) {
  constexpr int64_t kPart = 1'000'000;
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < rows; first += kPart)
    parts.push_back(
        cast(randn({std::min(kPart, rows - first), width}, DType::f32, device), type).eval());
  return parts.size() == 1 ? parts[0] : concat(parts, 0).eval();
}

int run(const BenchOptions& options) {
  const Device device = Device::named(options.get("--device", "cpu"));
  const Metric metric = parse_metric(options.get("--metric", "dot")).value();
  const DType type = dtype_from_name(options.get("--type", "f32")).value(),
              query_type = dtype_from_name(options.get("--query-type", "f32")).value();
  const int64_t k = std::stoll(options.get("-k", "10"));
  const std::string file = options.get("--file", "");
  const int64_t row_count = std::stoll(options.get("--rows", "100000")),
                width = std::stoll(options.get("--width", "768"));
  const bool is_compared = options.get("--made", "host") == "host";
  seed(7);
  const Tensor rows = !is_compared ? made_on(device, row_count, width, type)
                      : file.empty()
                          ? cast(randn({row_count, width}, DType::f32, Device::cpu()), type)
                          : cast(load(file, Device::cpu()) * 1.0, type);  // a copy, like the peers'
  const Tensor matrix = rows.to(device);
  NearestInputs more;
  if (metric == Metric::cosine) more.norms = row_norms(matrix);
  eval({matrix});
  if (more.norms) eval({more.norms});
  const double bytes = static_cast<double>(rows.size()) * static_cast<double>(dtype_bytes(type));
  std::istringstream counts(options.get("--queries", "1,64"));
  for (std::string count; std::getline(counts, count, ',');) {
    const Tensor queries =
        cast(randn({std::stoll(count), rows.size(1)}, DType::f32, Device::cpu()), query_type)
            .to(device);
    queries.eval();
    CompiledFunction search = compile([&](std::span<const Tensor> in) {
      const Nearest best = nearest_rows(metric, in[0], matrix, k, more);
      return std::vector<Tensor>{best.scores, best.indices};
    });
    std::vector<int32_t> found;
    const double ms = best_ms([&] { found = search({queries})[1].to_vector<int32_t>(); });
    std::cout << fmt::format(
        "{} {} [{}, {}] {} queries, k {}: {:.3f} ms, {:.0f} queries/s, {:.1f} GB/s", device.id(),
        dtype_name(type), rows.size(0), rows.size(1), count, k, ms, std::stod(count) / ms * 1e3,
        bytes / ms / 1e6);
    if (is_compared) {
      const int64_t checked = std::min<int64_t>(4, std::stoll(count));
      const Nearest right =
          nearest_rows(metric, queries.to(Device::cpu()).slice(0, 0, checked), rows, k);
      found.resize(static_cast<size_t>(checked * k));
      std::cout << fmt::format(", {:.0f}% equal",
                               100 * share_equal(found, right.indices.to_vector<int32_t>()));
    }
    std::cout << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace prism

int main(int count, char** words) {
  return prism::run_bench([&] { return prism::run(prism::BenchOptions(count, words)); });
}
