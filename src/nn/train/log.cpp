// Progress lines, logs and curves.
#include "prism/nn/log.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/system/output_file.h"
#include "base/units.h"
#include "prism/error.h"

namespace prism::nn {

namespace {

std::string duration_text(double seconds) {
  const auto all = static_cast<int64_t>(std::ceil(seconds));
  if (all < 60) return fmt::format("{} s", all);
  if (all < 3600) return fmt::format("{} min {} s", all / 60, all % 60);
  return fmt::format("{} h {} min", all / 3600, all % 3600 / 60);
}

std::string count_text(int64_t count) { return exact_count_text(static_cast<uint64_t>(count)); }

}  // namespace

Progress::Progress(int64_t steps, int64_t units_per_step, std::string unit, int64_t done)
    : steps_(steps),
      units_per_step_(units_per_step),
      done_(done),
      unit_(std::move(unit)),
      start_(std::chrono::steady_clock::now()) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::string Progress::line(int64_t step, double loss) const {
  const double passed = std::max(1e-9, seconds());
  const auto made = static_cast<double>(std::max<int64_t>(1, step - done_));
  const double left = passed / made * static_cast<double>(std::max<int64_t>(0, steps_ - step));
  return fmt::format("step {} of {}, loss {:.3f}, {} {}/s, {} left", count_text(step),
                     count_text(steps_), loss,
                     count_text(std::llround(made / passed * static_cast<double>(units_per_step_))),
                     unit_, duration_text(left));
}

struct TrainingLog::State {
  struct Row {
    int64_t step;
    std::map<std::string, double> values;
  };
  std::string path;
  std::ofstream file;
  std::vector<Row> rows;
};

TrainingLog::TrainingLog(std::string path) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  if (state_->path.empty()) return;
  state_->file.open(state_->path, std::ios::app);
  if (!state_->file)
    throw Error(ErrorCode::kIo,
                fmt::format("{}: the log cannot be opened for writing; does its folder exist?",
                            state_->path));
}
TrainingLog::~TrainingLog() = default;
TrainingLog::TrainingLog(TrainingLog&&) noexcept = default;

void TrainingLog::add(int64_t step, const std::map<std::string, double>& values) {
  state_->rows.push_back({step, values});
  if (state_->path.empty()) return;
  Json row = Json::object();
  row["step"] = step;
  for (const auto& [name, value] : values) row[name] = value;
  state_->file << row.dump() << std::endl;  // a run that is killed keeps its log
  if (!state_->file)
    throw Error(ErrorCode::kIo,
                fmt::format("{}: the log cannot be written; is the disk full?", state_->path));
}

std::string TrainingLog::svg(const std::vector<std::string>& names) const {
  constexpr double kWidth = 720, kHeight = 360, kLeft = 60, kBottom = 40, kTop = 20, kRight = 20;
  const char* const colours[] = {"#2563eb", "#dc2626", "#059669", "#d97706"};
  double last = 1, low = INFINITY, high = -INFINITY;
  for (const State::Row& row : state_->rows) {
    last = std::max(last, static_cast<double>(row.step));
    for (const std::string& name : names) {
      const auto found = row.values.find(name);
      if (found == row.values.end() || !std::isfinite(found->second)) continue;
      low = std::min(low, found->second), high = std::max(high, found->second);
    }
  }
  if (!(low < high)) low = std::isfinite(low) ? low - 0.5 : 0, high = low + 1;
  const auto x = [&](double step) { return kLeft + step / last * (kWidth - kLeft - kRight); };
  const auto y = [&](double value) {
    return kTop + (high - value) / (high - low) * (kHeight - kTop - kBottom);
  };
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  for (int tick = 0; tick <= 4; ++tick) {
    const double value = low + (high - low) * tick / 4, step = last * tick / 4;
    text += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#e5e7eb\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f}</text>\n",
        kLeft, kWidth - kRight, y(value), y(value), kLeft - 8, y(value) + 4, value, x(step),
        kHeight - kBottom + 20, step);
  }
  for (size_t n = 0; n < names.size(); ++n) {
    std::string points;
    for (const State::Row& row : state_->rows) {
      const auto found = row.values.find(names[n]);
      if (found == row.values.end() || !std::isfinite(found->second)) continue;
      points += fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(row.step)), y(found->second));
    }
    const char* const colour = colours[n % std::size(colours)];
    text += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" text-anchor=\"end\">{}</text>\n",
        colour, points, kWidth - kRight - 8, kTop + 16 + 16 * static_cast<double>(n), colour,
        names[n]);
  }
  return text + "</svg>\n";
}

void TrainingLog::write_svg(const std::string& path, const std::vector<std::string>& names) const {
  write_whole_file(path, svg(names));
}

}  // namespace prism::nn
