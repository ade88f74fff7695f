// Sizes, counts and a progress bar.
#include "cli/model_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/terminal.h"

namespace prism::cli {

std::string count_text(uint64_t number) {
  const auto value = static_cast<double>(number);
  if (number < 1000) return std::to_string(number);
  if (number < 1000000) return number_text(value / 1e3) + " K";
  if (number < 1000000000) return number_text(value / 1e6) + " M";
  return number_text(value / 1e9) + " B";
}

void progress_bar(const std::string& label, uint64_t done, uint64_t all) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last;
  const auto now = Clock::now();
  if (done < all && now - last < std::chrono::milliseconds(100)) return;
  last = now;
  if (all == 0) {
    progress(fmt::format("{} {}", label, size_text(done)));
    return;
  }
  constexpr uint64_t kWidth = 30;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
  const auto full = static_cast<size_t>(share * kWidth);
  progress(fmt::format("{} [{}{}] {:3.0f}% of {}", label, std::string(full, '#'),
                       std::string(kWidth - full, '.'), share * 100, size_text(all)));
}

}  // namespace prism::cli
