// Draws curves over the number of texts, and reads the numbers of a bench.
#include "cli/texts_chart.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::cli {
namespace {

// In pixels.
constexpr double kLeft = 90, kTop = 84, kWidth = 560, kHeight = 320, kRight = 150, kBottom = 70;
constexpr const char* kColours[] = {"#3b7dd8", "#d9822b", "#7a55c7", "#3d9970", "#c0392b"};

// The least of 1, 2, 5 times a power of ten that divides the range into at most six steps.
double step_of(double most) {
  const double power = std::pow(10.0, std::floor(std::log10(most / 6)));
  for (const double times : {1.0, 2.0, 5.0})
    if (most / (power * times) <= 6) return power * times;
  return power * 10;
}

[[noreturn]] void refuse(const std::string& found) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("bench: --texts has \"{}\"; give numbers above 0, as in 1,2,4,8 or "
                          "1,2,4,...,64",
                          found));
}

}  // namespace

std::string texts_chart(const ChartText& text, const std::vector<TextsCurve>& curves) {
  double most = 1;
  int64_t first = INT64_MAX, last = 1;
  std::vector<int64_t> counts;
  for (const TextsCurve& curve : curves)
    for (const auto& [texts, rate] : curve.points) {
      most = std::max(most, rate);
      first = std::min(first, texts);
      last = std::max(last, texts);
      if (std::ranges::find(counts, texts) == counts.end()) counts.push_back(texts);
    }
  const double step = step_of(most), axis = std::ceil(most / step) * step;
  const double range =
      std::max(1e-9, std::log2(static_cast<double>(last)) - std::log2(static_cast<double>(first)));
  const auto x_of = [&](int64_t texts) {
    if (first == last) return kLeft + kWidth / 2;
    const double place =
        std::log2(static_cast<double>(texts)) - std::log2(static_cast<double>(first));
    return kLeft + kWidth * place / range;
  };
  const auto y_of = [&](double rate) { return kTop + kHeight * (1 - rate / axis); };
  std::string svg = svg_start(kLeft + kWidth + kRight, kTop + kHeight + kBottom, text);
  for (double rate = 0; rate <= axis * 1.0001; rate += step)
    svg += fmt::format(
        "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#e4e4e4\"/>\n<text "
        "x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\" fill=\"#666666\">{5:g}</text>\n",
        kLeft, y_of(rate), kLeft + kWidth, kLeft - 10, y_of(rate) + 4.5, rate);
  for (const int64_t texts : counts)
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666666\">{}</text>\n",
        x_of(texts), kTop + kHeight + 22, texts);
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666666\">texts at once</text>\n"
      "<text x=\"24\" y=\"{}\" fill=\"#666666\">tokens/s</text>\n",
      kLeft + kWidth / 2, kTop + kHeight + 48, kTop - 12);
  for (size_t i = 0; i < curves.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string line;
    for (const auto& [texts, rate] : curves[i].points) {
      line += fmt::format("{:.1f},{:.1f} ", x_of(texts), y_of(rate));
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"><title>{} texts: {:.1f} "
          "tokens/s</title></circle>\n",
          x_of(texts), y_of(rate), colour, texts, rate);
    }
    if (curves[i].points.empty()) continue;
    const auto& [texts, rate] = curves[i].points.back();
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n<text "
        "x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n",
        line, colour, x_of(texts) + 10, y_of(rate) + 4.5, colour, svg_text(curves[i].device));
  }
  return svg + "</svg>\n";
}

std::vector<int64_t> text_counts(const std::vector<std::string>& words) {
  constexpr int64_t kMost = 4096;
  std::vector<int64_t> counts;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "...") {
      if (counts.size() < 2 || i + 1 == words.size() || words[i + 1] == word) refuse(word);
      continue;
    }
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (problem != std::errc() || end != word.data() + word.size() || number < 1 || number > kMost)
      refuse(word);
    if (i > 0 && words[i - 1] == "...") {
      const int64_t before = counts[counts.size() - 2], ratio = counts.back() / before;
      if (ratio < 2) refuse("...");
      while (counts.back() * ratio < number) counts.push_back(counts.back() * ratio);
    }
    counts.push_back(number);
  }
  return counts;
}

}  // namespace prism::cli
