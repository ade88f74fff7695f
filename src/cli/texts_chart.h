// A chart of total speed over the number of texts as SVG: one curve for each device.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench_chart.h"

namespace prism::cli {

struct TextsCurve {
  std::string device;
  std::vector<std::pair<int64_t, double>> points;  // texts, tokens per second of all together
};

// The axis of texts is logarithmic.
std::string texts_chart(const ChartText& text, const std::vector<TextsCurve>& curves);

// The numbers of texts to measure: numbers above 0, and "..." between two of them for those that
// continue by the ratio of the two before ("1,2,4,...,64"). Throws kInvalidArgument.
std::vector<int64_t> text_counts(const std::vector<std::string>& words);

}  // namespace prism::cli
