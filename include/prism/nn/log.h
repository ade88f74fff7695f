// What a training run reports: a progress line, a log as JSON lines, and a curve as SVG.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace prism::nn {

// Times a run and writes its progress line; the caller prints it.
class Progress {
 public:
  // unit: what a step processes, "images" or "tokens".
  Progress(int64_t steps, int64_t units_per_step, std::string unit, int64_t done = 0);
  // "step 120 of 2,000, loss 2.134, 8,310 tokens/s, 2 min 53 s left"
  std::string line(int64_t step, double loss) const;
  double seconds() const;

 private:
  int64_t steps_, units_per_step_, done_;
  std::string unit_;
  std::chrono::steady_clock::time_point start_;
};

// Rows of named numbers by step. Throws kIo if the file cannot be written.
class TrainingLog {
 public:
  explicit TrainingLog(std::string path = "");  // JSON lines are appended to it; "": only kept here
  ~TrainingLog();
  TrainingLog(TrainingLog&&) noexcept;
  // Infinite and NaN values are written as null.
  void add(int64_t step, const std::map<std::string, double>& values);
  // A curve for each name against the step.
  std::string svg(const std::vector<std::string>& names) const;
  void write_svg(const std::string& path, const std::vector<std::string>& names) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::nn

#pragma GCC visibility pop
