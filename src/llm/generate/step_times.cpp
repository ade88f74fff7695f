// Implements averages of step times and estimates between them.
#include "llm/generate/step_times.h"

#include <algorithm>
#include <iterator>

namespace prism::llm {
namespace {

// A row beyond those measured costs this part of a step until it is measured: less than on any
// device tried, so that more rows are tried at all.
constexpr double kRowCost = 0.03;
// Weight of a new measurement. One outlier (another program ran) counts as twice the average.
constexpr double kWeight = 0.2, kMostOutlier = 2;
// Steps after which a measurement no longer counts, so that one bad moment is not remembered.
constexpr uint64_t kForgetAfter = 256;

}  // namespace

void StepTimes::learn(int64_t rows, double seconds) {
  ++now_;
  std::erase_if(times_,
                [&](const auto& each) { return now_ - each.second.learned > kForgetAfter; });
  const auto [found, is_new] = times_.try_emplace(rows, Time{seconds, now_});
  Time& time = found->second;
  time.learned = now_;
  if (is_new) return;
  time.seconds += kWeight * (std::min(seconds, kMostOutlier * time.seconds) - time.seconds);
}

double StepTimes::seconds(int64_t rows) const {
  if (times_.empty()) return 0;
  const auto above = times_.lower_bound(rows);
  if (above != times_.end() && (above->first == rows || above == times_.begin()))
    return above->second.seconds;
  const auto below = std::prev(above);
  const auto distance = static_cast<double>(rows - below->first);
  if (above != times_.end()) {
    const double part = distance / static_cast<double>(above->first - below->first);
    return below->second.seconds + part * (above->second.seconds - below->second.seconds);
  }
  double slope = kRowCost * times_.begin()->second.seconds;
  if (times_.size() > 1) {
    const auto first = times_.begin();
    slope = std::max(slope, (below->second.seconds - first->second.seconds) /
                                static_cast<double>(below->first - first->first));
  }
  return below->second.seconds + slope * distance;
}

}  // namespace prism::llm
