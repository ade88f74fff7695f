// A bar chart of a bench as SVG: one bar for each op or task, as long as its share of the limit.
#pragma once

#include <string>
#include <vector>

#include "ops/bench/op_bench.h"

namespace prism::cli {

struct ChartText {
  std::string title;     // "NVIDIA H200 (cuda:0)"
  std::string subtitle;  // date, peaks
};

struct ChartBar {
  std::string label, detail;  // before the bar
  std::string rate;           // after the bar
  double share = 0;           // of the limit
  BenchLimit limit = BenchLimit::bandwidth;
  bool is_faded = false;
};

// The beginning of every chart: size, background, title. svg_text escapes a text.
std::string svg_start(double width, double height, const ChartText& text);
std::string svg_text(const std::string& text);

std::string bar_chart(const ChartText& text, const std::vector<ChartBar>& bars);
// Shows only the results that ran.
std::string bench_chart(const ChartText& text, const std::vector<BenchResult>& results);

}  // namespace prism::cli
