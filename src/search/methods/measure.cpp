// Measures how much a searcher finds with which effort.
#include <algorithm>
#include <bit>
#include <chrono>
#include <set>

#include "search/methods/searcher.h"

namespace prism::search {

namespace {

using Clock = std::chrono::steady_clock;

// More effort is not measured where nearly everything is found.
constexpr double kEnough = 0.999;

double microseconds_since(Clock::time_point start, uint64_t queries) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
         static_cast<double>(queries);
}

// The share of the right rows [queries][k] that were found.
double recall_of(const Found& found, const Found& right, uint64_t queries) {
  const uint64_t k = right.size() / queries;
  uint64_t hits = 0, all = 0;
  for (uint64_t q = 0; q < queries; ++q) {
    std::set<uint64_t> rows;
    for (uint64_t i = q * k; i < (q + 1) * k; ++i)
      if (right[i].is_row()) rows.insert(right[i].row);
    all += rows.size();
    for (uint64_t i = q * k; i < (q + 1) * k; ++i) hits += rows.contains(found[i].row);
  }
  return all == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(all);
}

}  // namespace

void measure(Searcher& searcher, Wanted all, std::span<const uint32_t> held_back,
             const std::function<std::vector<float>(uint64_t)>& row) {
  if (held_back.empty()) return;
  std::vector<float> queries;
  std::vector<uint32_t> allowed((all.rows.count + 31) / 32, ~uint32_t{0});
  for (const uint32_t each : held_back) {
    const std::vector<float> vector = row(each);
    queries.insert(queries.end(), vector.begin(), vector.end());
    allowed[each / 32] &= ~(uint32_t{1} << each % 32);
  }
  all.queries = queries;
  all.rows.allowed = allowed.data();
  all.allowed = all.rows.count - held_back.size();
  for (const uint64_t k : {10, 100}) {
    if (k * 4 > all.allowed) break;
    all.count = k;
    const auto start = Clock::now();
    const Found right = exact_search(all);
    if (k == 10) searcher.curve.exact_microseconds = microseconds_since(start, held_back.size());
    // Steps of a half and a third: 2, 3, 4, 6, 8, 12 ...
    for (uint64_t effort = searcher.method() == Method::graph ? k : 1;
         effort <= searcher.largest_effort();
         effort = std::max(effort + 1,
                           (effort & (effort - 1)) == 0 ? effort * 3 / 2 : std::bit_ceil(effort))) {
      all.effort = effort;
      const auto before = Clock::now();
      const Found found = searcher.search(all);
      const EffortPoint point{k, effort, recall_of(found, right, held_back.size()),
                              microseconds_since(before, held_back.size())};
      searcher.curve.points.push_back(point);
      if (point.recall >= kEnough || point.microseconds > 2 * searcher.curve.exact_microseconds)
        break;
    }
  }
}

}  // namespace prism::search
