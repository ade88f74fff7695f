// Divides rows into lists by trained centers.
#include "search/methods/lists.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/methods/ivf_searcher.h"
#include "search/methods/k_means.h"
#include "tensor/cpu_pool.h"

namespace prism::search {

namespace {

// Rows for each list that centers are trained with.
constexpr uint64_t kTrainedPerList = 64;

std::vector<float> prepared_rows(Metric metric, uint64_t width, uint64_t begin, uint64_t count,
                                 const std::function<uint64_t(uint64_t)>& chosen,
                                 const CodeSpace::RowReader& row) {
  std::vector<float> x(count * width);
  cpu_pool().parallel_for(count, 256, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      std::vector<float> vector = row(chosen(begin + i));
      prepare_for_lists(metric, vector);
      std::ranges::copy(vector, x.begin() + static_cast<ptrdiff_t>(i * width));
    }
  });
  return x;
}

}  // namespace

Lists make_lists(const Device& device, Metric metric, uint64_t width, uint64_t rows, uint64_t count,
                 const CodeSpace::RowReader& row) {
  if (count == 0) count = static_cast<uint64_t>(std::sqrt(static_cast<double>(rows)));
  count = std::clamp<uint64_t>(count, 1, rows);
  const uint64_t trained = std::min(rows, count * kTrainedPerList);
  const std::vector<float> sample = prepared_rows(
      metric, width, 0, trained, [&](uint64_t i) { return i * rows / trained; }, row);
  Lists lists;
  lists.centers = train_centers(device, sample, width, count);
  std::vector<uint32_t> list_of(rows);
  constexpr uint64_t kPart = 1 << 18;  // rows in f32 at once
  for (uint64_t first = 0; first < rows; first += kPart) {
    const uint64_t some = std::min(kPart, rows - first);
    const std::vector<float> x = prepared_rows(
        metric, width, first, some, [](uint64_t i) { return i; }, row);
    std::ranges::copy(assign_rows(device, x, lists.centers, width),
                      list_of.begin() + static_cast<ptrdiff_t>(first));
  }
  lists.begin.assign(count + 1, 0);
  for (const uint32_t list : list_of) ++lists.begin[list + 1];
  std::partial_sum(lists.begin.begin(), lists.begin.end(), lists.begin.begin());
  std::vector<uint32_t> next(lists.begin.begin(), lists.begin.end() - 1);
  lists.rows.resize(rows);
  for (uint32_t r = 0; r < rows; ++r) lists.rows[next[list_of[r]]++] = r;
  return lists;
}

}  // namespace prism::search
