// The number of prompt tokens in a batch, so that a batch takes about a given time.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace prism::llm {

// Learns from each batch how many rows fit into the time. Times vary, and the limit should hold for
// slow batches too: one that takes too long shrinks the next at once, and after fast ones the size
// grows slowly, by a factor from two to eight only while batches take less than half of the time.
class ChunkSize {
 public:
  static constexpr int64_t kLeast = 16;  // rows of a batch: see below
  // seconds: the limit of a batch; 0: no limit. first: the rows of the first batch, of which
  // nothing is known.
  void set_limit(double seconds, int64_t first = 64) {
    limit_ = seconds;
    rows_ = first;
  }
  bool is_limited() const { return limit_ > 0; }
  // The prompt rows that the next batch may have beside those of decoding texts, at least kLeast
  // and at most what leaves `most` for all. All rows together are rounded down to one of few sizes:
  // on the CPU a batch of a new size needs a new plan.
  int64_t rows(int64_t most, int64_t decoding = 0) const {
    if (!is_limited()) return most - decoding;
    const int64_t rows = std::max(rows_, kLeast);
    const int64_t step =
        std::max(kFinest, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows))) / 4);
    return std::min(most - decoding, std::max(rows - rows % step - decoding, kLeast));
  }
  void learn(int64_t rows, double seconds) {
    if (!is_limited() || rows < 1) return;
    const auto had = static_cast<double>(rows);
    const double fit = had * kAim * limit_ / std::max(seconds, 1e-9);
    const auto now = static_cast<double>(std::max(rows, rows_));
    if (fit < now)
      rows_ = static_cast<int64_t>(fit);
    else if (fit >= 2 * now)  // in few steps: on a device each new size needs a plan
      rows_ = static_cast<int64_t>(std::clamp(fit / 2, 2 * now, 8 * now));
    else
      rows_ = static_cast<int64_t>(std::ceil(now + (fit - now) * kGrowth));
  }

 private:
  // kLeast rows are enough for the matrix products of a CPU to be limited by arithmetic rather than
  // memory.
  static constexpr int64_t kFinest = 8;  // between sizes
  // Part of the limit to aim at, and of the way to go to a larger size. On two idle cores the
  // longest of 70 batches took 1.2 times as long as the aim.
  static constexpr double kAim = 0.8, kGrowth = 0.25;
  int64_t rows_ = 64;
  double limit_ = 0;
};

}  // namespace prism::llm
