// Builds an index with a method and times searches of a batch of queries, for
// bench/search/peers.py.
//
// usage: index_bench --rows rows.npy --queries queries.npy --truth truth.npy --method graph
//                    [--recall 0.95] [--type f32] [--metric l2] [--links 32] [--effort 100]
//                    [--save FILE]
//
// truth.npy has the row numbers of the 10 nearest rows of each query. Prints the seconds of the
// build, and for one query at a time and for the whole batch: queries per second (the best of the
// runs), recall, and how the index searched. The memory is that of the whole process. With --save
// the index is also written to a file, and opening it is timed.
#include <chrono>
#include <fstream>
#include <iostream>
#include <set>

#include <fmt/format.h>

#include "bench_options.h"
#include "prism/error.h"
#include "prism/search.h"
#include "search/vector_file.h"

namespace prism::search {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

uint64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      uint64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes << 10;
    }
  return 0;
}

double recall_of(const std::vector<SearchResult>& results, const VectorTable& truth) {
  uint64_t found = 0;
  for (uint64_t q = 0; q < truth.rows; ++q) {
    const std::set<float> right(truth.row(q).begin(), truth.row(q).end());
    for (const Hit& hit : results[q].hits)
      found += right.contains(static_cast<float>(hit.id.number()));
  }
  return static_cast<double>(found) / static_cast<double>(truth.rows * truth.width);
}

// The file is in the system's cache, as after it was written.
void time_opening(const std::string& path) {
  double best = 1e30, worst = 0;
  IndexInfo info;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    info = Index::open(path).info();
    best = std::min(best, seconds_since(start));
    worst = std::max(worst, seconds_since(start));
  }
  std::cout << fmt::format("open {:.2f} to {:.2f} ms: {} MB, {} vectors, method {}\n", best * 1e3,
                           worst * 1e3, info.file_bytes / 1000000, info.vectors,
                           method_name(info.method));
}

int run(const BenchOptions& options) {
  const VectorTable queries = read_vectors(options.get("--queries", "queries.npy"));
  const VectorTable truth = read_vectors(options.get("--truth", "truth.npy"));
  Index index = [&] {
    const VectorTable rows = read_vectors(options.get("--rows", "rows.npy"));
    Index made({.width = rows.width,
                .metric = parse_metric(options.get("--metric", "l2")).value(),
                .type = dtype_from_name(options.get("--type", "f32")).value()});
    for (uint64_t r = 0; r < rows.rows; ++r) made.add(r, rows.row(r));
    return made;
  }();
  BuildOptions how;
  how.method = parse_method(options.get("--method", "graph")).value();
  how.links = std::stoull(options.get("--links", "32"));
  how.effort = std::stoull(options.get("--effort", "100"));
  how.lists = std::stoull(options.get("--lists", "0"));
  const auto start = Clock::now();
  index.build(how);
  std::cout << fmt::format("memory {} MiB\n", resident_bytes() >> 20);
  std::cout << fmt::format("build {:.2f} s\n", seconds_since(start));
  if (options.has("--curve"))
    for (const MeasuredEffort& point : index.info().measured)
      std::cout << fmt::format("k {} effort {}: recall {:.4f}, {:.1f} us\n", point.k, point.effort,
                               point.recall, point.microseconds);
  SearchOptions wanted{.k = truth.width};
  wanted.recall = std::stod(options.get("--recall", "0.95"));
  double best = 1e30;
  std::vector<SearchResult> results;
  for (int i = 0; i < 5; ++i) {
    const auto before = Clock::now();
    results = index.search_batch(queries.values, wanted);
    best = std::min(best, seconds_since(before));
  }
  std::cout << fmt::format("batch {:.0f} queries/s, recall {:.4f}, {}\n",
                           static_cast<double>(queries.rows) / best, recall_of(results, truth),
                           results[0].how);
  const auto before = Clock::now();
  for (uint64_t q = 0; q < queries.rows; ++q) results[q] = index.search(queries.row(q), wanted);
  std::cout << fmt::format("single {:.0f} queries/s, recall {:.4f}\n",
                           static_cast<double>(queries.rows) / seconds_since(before),
                           recall_of(results, truth));
  if (const std::string path = options.get("--save", ""); !path.empty()) {
    index.save(path);
    time_opening(path);
  }
  return 0;
}

}  // namespace
}  // namespace prism::search

int main(int count, char** words) {
  return prism::run_bench([&] { return prism::search::run(prism::BenchOptions(count, words)); });
}
