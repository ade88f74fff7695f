// The measured curve of a searcher: the effort for a recall, and its text in the file.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/json.h"
#include "prism/error.h"
#include "search/methods/searcher.h"

namespace prism::search {

std::optional<EffortPoint> Curve::least(uint64_t k, double recall) const {
  // The curve of the next larger k that was measured; beyond the largest, effort grows with k.
  uint64_t measured = 0;
  for (const EffortPoint& point : points)
    if (measured < k) measured = std::max(measured, point.k);
  const EffortPoint* before = nullptr;
  for (const EffortPoint& point : points) {
    if (point.k != measured) continue;
    if (point.recall < recall) {
      before = &point;
      continue;
    }
    EffortPoint found = point;
    if (before) {
      const double share = (recall - before->recall) / (point.recall - before->recall);
      const auto between = [&](double a, double b) {
        return a + (b - a) * std::clamp(share, 0.0, 1.0);
      };
      found.effort = static_cast<uint64_t>(std::ceil(
          between(static_cast<double>(before->effort), static_cast<double>(point.effort))));
      found.recall = recall;
      found.microseconds = between(before->microseconds, point.microseconds);
    }
    if (k > measured) {
      found.effort = (found.effort * k + measured - 1) / measured;
      found.microseconds *= static_cast<double>(k) / static_cast<double>(measured);
    }
    return found;
  }
  return std::nullopt;
}

std::string Curve::text() const {
  Json all = Json::array();
  for (const EffortPoint& point : points)
    all.push_back({point.k, point.effort, point.recall, point.microseconds});
  return Json{{"exact_microseconds", exact_microseconds}, {"points", all}}.dump();
}

Curve Curve::parse(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const JsonView top(json);
    Curve curve;
    curve.exact_microseconds = top["exact_microseconds"].number();
    for (const JsonView& point : top["points"].items()) {
      const std::vector<JsonView> numbers = point.items();
      if (numbers.size() != 4) point.fail("has not four numbers");
      constexpr int64_t kMost = int64_t{1} << 32;
      curve.points.push_back({static_cast<uint64_t>(numbers[0].integer(1, kMost)),
                              static_cast<uint64_t>(numbers[1].integer(1, kMost)),
                              numbers[2].number(), numbers[3].number()});
    }
    return curve;
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("the measured curve cannot be read: {}", error.what()));
  }
}

}  // namespace prism::search
