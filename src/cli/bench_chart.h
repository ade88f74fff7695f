// A bar chart of a bench as SVG: one bar an op, as long as its share of the device's peak.
#pragma once

#include <string>
#include <vector>

#include "ops/op_bench.h"

namespace prism::cli {

struct ChartText {
  std::string title;     // "NVIDIA H200 (cuda:0)"
  std::string subtitle;  // date, peaks
};

std::string bench_chart(const ChartText& text, const std::vector<BenchResult>& results);

}  // namespace prism::cli
