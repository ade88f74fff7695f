// Times an index whose scans run on a device, over rows that are made there.
//
// usage: device_index_bench [--device cuda:0] [--rows 1000000] [--width 768] [--type i8]
//                           [--rescore f16] [--metric l2] [--method exact] [--lists 0]
//                           [--recall 0.95] [--oversample 2,8] [--queries 200] [--batch 1]
//                           [--data clustered]
//
// Rows and queries are clustered: 1,000 centers, and around each a normal distribution of 32
// dimensions with a little noise in all of them; or, with --data normal, normal in all dimensions.
// Prints the seconds of each step, then milliseconds for each batch of queries (best and median),
// queries per second of the best, and the share of the 10 nearest that were found, against a scan
// of the rows in f32; one line for each oversampling (0: the default).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "bench_options.h"
#include "prism/device.h"
#include "prism/error.h"
#include "prism/ops.h"
#include "prism/search.h"

namespace prism::search {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kNearest = 10;
constexpr int64_t kCenters = 1000;
constexpr int64_t kPlane = 32;
constexpr int64_t kPart = 1'000'000;  // rows made at once
constexpr int64_t kChecked = 1000;    // queries whose results are compared

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void report(const char* step, Clock::time_point start) {
  std::cout << fmt::format("{}: {:.1f} s\n", step, seconds_since(start)) << std::flush;
}

class Data {
 public:
  Data(int64_t width, bool is_clustered, const Device& device)
      : width_(width), is_clustered_(is_clustered), device_(device) {
    centers_ = randn({kCenters, width}, DType::f32, device).eval();
    plane_ = (randn({kPlane, width}, DType::f32, device) / std::sqrt(double{kPlane})).eval();
  }
  Tensor make(int64_t rows) const {
    const Tensor noise = randn({rows, width_}, DType::f32, device_);
    if (!is_clustered_) return noise.eval();
    const Tensor chosen = cast(rand({rows}, DType::f32, device_) * double{kCenters}, DType::i32);
    const Tensor within = matmul(randn({rows, kPlane}, DType::f32, device_), plane_);
    return (gather_rows(centers_, chosen) + within + noise * 0.1).eval();
  }

 private:
  int64_t width_;
  bool is_clustered_;
  Device device_;
  Tensor centers_, plane_;
};

std::span<const float> row_of(const std::vector<float>& values, int64_t row, int64_t width) {
  return std::span(values).subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
}

int run(const BenchOptions& options) {
  const Device device = Device::named(options.get("--device", "cuda:0"));
  const Metric metric = parse_metric(options.get("--metric", "l2")).value();
  const int64_t rows = std::stoll(options.get("--rows", "1000000")),
                width = std::stoll(options.get("--width", "768")),
                query_count = std::stoll(options.get("--queries", "200")),
                batch = std::stoll(options.get("--batch", "1"));
  const std::string rescore = options.get("--rescore", "");
  seed(7);
  const Data data(width, options.get("--data", "clustered") == "clustered", device);
  const Tensor queries = data.make(query_count);
  const int64_t checked = std::min(kChecked, query_count);
  const Tensor first_queries = queries.slice(0, 0, checked);

  IndexOptions what{.width = static_cast<uint64_t>(width),
                    .metric = metric,
                    .type = dtype_from_name(options.get("--type", "f16")).value()};
  if (!rescore.empty()) what.rescore = dtype_from_name(rescore).value();
  Index index(what);
  std::vector<std::vector<std::pair<float, uint64_t>>> truth(static_cast<size_t>(checked));
  auto start = Clock::now();
  for (int64_t first = 0; first < rows; first += kPart) {
    const Tensor part = data.make(std::min(kPart, rows - first));
    const Nearest best = nearest_rows(metric, first_queries, part, kNearest);
    const auto scores = best.scores.to_vector<float>();
    const auto nearest = best.indices.to_vector<int32_t>();
    for (size_t i = 0; i < nearest.size(); ++i)
      truth[i / kNearest].emplace_back(is_distance(metric) ? scores[i] : -scores[i],
                                       static_cast<uint64_t>(first + nearest[i]));
    const auto values = part.to_vector<float>();
    for (int64_t r = 0; r < part.size(0); ++r)
      index.add(static_cast<uint64_t>(first + r), row_of(values, r, width));
  }
  for (auto& each : truth) {
    std::ranges::sort(each);
    each.resize(kNearest);
  }
  report("rows made and added", start);
  index.set_device(device.id());
  BuildOptions how;
  how.method = parse_method(options.get("--method", "exact")).value();
  how.lists = std::stoull(options.get("--lists", "0"));
  how.device = device.id();
  start = Clock::now();
  index.build(how);
  report("build", start);

  SearchOptions wanted{.k = kNearest};
  wanted.recall = std::stod(options.get("--recall", "0.95"));
  const auto values = queries.to_vector<float>();
  const auto search = [&](int64_t first) {
    const int64_t count = std::min(batch, query_count - first);
    return index.search_batch(std::span(values).subspan(static_cast<size_t>(first * width),
                                                        static_cast<size_t>(count * width)),
                              wanted);
  };
  std::istringstream oversamples(options.get("--oversample", "0"));
  for (std::string oversample; std::getline(oversamples, oversample, ',');) {
    wanted.oversample = std::stoull(oversample);
    start = Clock::now();
    search(0);
    report("first search", start);
    std::vector<double> seconds;
    std::vector<SearchResult> results;
    for (int round = 0; round < (batch < query_count ? 2 : 7); ++round) {
      results.clear();
      for (int64_t q = 0; q < query_count; q += batch) {
        const auto before = Clock::now();
        std::vector<SearchResult> some = search(q);
        seconds.push_back(seconds_since(before));
        for (SearchResult& each : some) results.push_back(std::move(each));
      }
    }
    std::ranges::sort(seconds);
    size_t found = 0;
    for (size_t q = 0; q < truth.size(); ++q)
      for (const Hit& hit : results[q].hits)
        found += std::ranges::find(truth[q], hit.id.number(),
                                   &std::pair<float, uint64_t>::second) != truth[q].end();
    std::cout << fmt::format(
        "{} [{}, {}], {} queries at once: best {:.3f} ms, median {:.3f} ms, {:.0f} queries/s, "
        "recall {:.4f}, {}, oversampling {}\n",
        options.get("--type", "f16"), rows, width, batch, seconds[0] * 1e3,
        seconds[seconds.size() / 2] * 1e3, static_cast<double>(batch) / seconds[0],
        static_cast<double>(found) / static_cast<double>(checked * kNearest), results[0].how,
        oversample);
  }
  return 0;
}

}  // namespace
}  // namespace prism::search

int main(int count, char** words) {
  return prism::run_bench([&] { return prism::search::run(prism::BenchOptions(count, words)); });
}
