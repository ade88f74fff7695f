// Draws the bars, axes and labels of a bench chart as SVG.
#include "cli/bench_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"

namespace prism::cli {
namespace {

// In pixels. Labels use a 13 px sans-serif font, whose letters are about 7 px wide.
constexpr double kLabelLetter = 7, kRow = 26, kBar = 16, kTop = 84, kBottom = 64, kPlot = 520,
                 kRight = 190;

const char* colour_of(BenchLimit limit) {
  switch (limit) {
    case BenchLimit::bandwidth:
      return "#3b7dd8";
    case BenchLimit::f32:
      return "#d9822b";
    case BenchLimit::f16:
      return "#7a55c7";
    case BenchLimit::quantised:
      return "#3d9970";
  }
  return "#888888";
}

std::string reached_text(const BenchResult& result) {
  return result.limit == BenchLimit::bandwidth ? rate_text(result.bytes_rate, "B/s")
                                               : rate_text(result.flops_rate, "FLOP/s");
}

}  // namespace

std::string svg_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string svg_start(double width, double height, const ChartText& text) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 "
      "{0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" "
      "fill=\"#222222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"24\" y=\"34\" font-size=\"19\" font-weight=\"bold\">{2}</text>\n"
      "<text x=\"24\" y=\"56\" fill=\"#666666\">{3}</text>\n",
      width, height, svg_text(text.title), svg_text(text.subtitle));
}

std::string bench_chart(const ChartText& text, const std::vector<BenchResult>& results) {
  std::vector<ChartBar> bars;
  for (const BenchResult& each : results) {
    if (!each.problem.empty()) continue;
    const bool elsewhere = !each.elsewhere.empty();
    bars.push_back({each.op, each.what,
                    reached_text(each) + (elsewhere ? ", partly on the CPU" : "") +
                        (each.in_cache ? ", in cache" : ""),
                    std::min(each.share, 1.0), each.limit, elsewhere});
  }
  return bar_chart(text, bars);
}

std::string bar_chart(const ChartText& text, const std::vector<ChartBar>& bars) {
  size_t longest = 8;
  double most = 1;
  for (const ChartBar& each : bars) {
    longest = std::max(longest, each.label.size() + each.detail.size() + 2);
    most = std::max(most, each.share);
  }
  // The axis ends at a whole quarter. A share above 1 is a model whose weights come from caches.
  const double axis = std::ceil(most * 4) / 4,
               left = 24 + kLabelLetter * static_cast<double>(longest);
  const double height = kTop + kRow * static_cast<double>(bars.size()) + kBottom;
  const double width = left + kPlot + kRight;
  const auto x_of = [&](double share) { return left + kPlot * share / axis; };

  std::string svg = svg_start(width, height, text);
  const double bottom = kTop + kRow * static_cast<double>(bars.size());
  const double step = axis > 2 ? 0.5 : 0.25;
  for (double share = 0; share <= axis + 1e-9; share += step) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{4:.1f}\" text-anchor=\"middle\" "
        "fill=\"#666666\">{5:.0f}%</text>\n",
        x_of(share), kTop - 4, bottom + 4, std::fabs(share - 1) < 1e-9 ? "#888888" : "#e4e4e4",
        bottom + 20, share * 100);
  }
  for (size_t i = 0; i < bars.size(); ++i) {
    const ChartBar& each = bars[i];
    const double y = kTop + kRow * static_cast<double>(i), middle = y + kRow / 2 + 4.5;
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{} <tspan fill=\"#777777\">{}</tspan>"
        "</text>\n<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\" "
        "fill=\"{}\"{}/>\n<text x=\"{:.1f}\" y=\"{:.1f}\" stroke=\"#ffffff\" stroke-width=\"4\" "
        "paint-order=\"stroke\">{:.0f}% <tspan fill=\"#777777\">{}"
        "</tspan></text>\n",
        left - 10, middle, svg_text(each.label), svg_text(each.detail), left, y + (kRow - kBar) / 2,
        std::max(1.0, kPlot * each.share / axis), kBar, colour_of(each.limit),
        each.is_faded ? " fill-opacity=\"0.35\"" : "", x_of(each.share) + 8, middle,
        each.share * 100, svg_text(each.rate));
  }
  double x = left;
  svg += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#666666\">share of the "
      "measured</text>\n",
      left - 10, bottom + 46.5);
  for (const auto limit :
       {BenchLimit::bandwidth, BenchLimit::f32, BenchLimit::f16, BenchLimit::quantised}) {
    if (std::ranges::none_of(bars, [&](const ChartBar& bar) { return bar.limit == limit; }))
      continue;
    const std::string name = limit == BenchLimit::bandwidth
                                 ? "bandwidth"
                                 : fmt::format("rate of {}s", limit_name(limit));
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#444444\">{}</text>\n",
        x, bottom + 36, colour_of(limit), x + 18, bottom + 46.5, name);
    x += 40 + kLabelLetter * static_cast<double>(name.size());
  }
  return svg + "</svg>\n";
}

}  // namespace prism::cli
