// Formats sizes, counts and progress bars.
#include "cli/model_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

#include "cli/terminal.h"

namespace prism::cli {

std::string count_text(uint64_t number) {
  const auto value = static_cast<double>(number);
  if (number < 1000) return std::to_string(number);
  if (number < 1000000) return number_text(value / 1e3) + " K";
  if (number < 1000000000) return number_text(value / 1e6) + " M";
  return number_text(value / 1e9) + " B";
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min", (whole + 30) / 60);
  if (whole >= 36000) return fmt::format("{} h", (whole + 1800) / 3600);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string transfer_text(const std::string& label, const Transfer& at) {
  constexpr size_t kLabel = 22, kBar = 10;
  // The end of a file's name tells variants of one model apart, so the middle is left out.
  const std::string name = label.size() <= kLabel ? label
                                                  : label.substr(0, 10) + ".." +
                                                        label.substr(label.size() - kLabel + 12);
  const double fresh = static_cast<double>(at.done - std::min(at.first, at.done));
  const double speed = at.seconds > 0 ? fresh / at.seconds : 0;
  std::string rate;
  if (speed > 0) rate = ", " + rate_text(speed, "B/s");
  if (at.all == 0) return fmt::format("{} {}{}", name, size_text(at.done), rate);
  if (speed > 0 && at.done < at.all)
    rate += fmt::format(", {} left", duration_text(static_cast<double>(at.all - at.done) / speed));
  const double share = std::min(1.0, static_cast<double>(at.done) / static_cast<double>(at.all));
  const auto full = static_cast<size_t>(share * kBar);
  return fmt::format("{} [{}{}] {:3.0f}% of {}{}", name, std::string(full, '#'),
                     std::string(kBar - full, '.'), share * 100, size_text(at.all), rate);
}

std::string prompt_text(const llm::PromptProgress& at) {
  const auto all = static_cast<double>(at.tokens), read = static_cast<double>(at.read),
             rate = (read - static_cast<double>(at.reused)) / at.seconds;
  std::string text =
      fmt::format("reading the prompt: {:.0f}% of {} tokens", std::floor(100 * read / all),
                  exact_count_text(static_cast<uint64_t>(at.tokens)));
  if (at.read > at.reused && at.read < at.tokens)
    text += fmt::format(", {} left", duration_text((all - read) / rate));
  return text;
}

void prompt_progress(const llm::PromptProgress& at) {
  if (at.read < at.tokens)
    progress(prompt_text(at));
  else
    end_progress();
}

void progress_bar(const std::string& label, uint64_t done, uint64_t all) {
  using Clock = std::chrono::steady_clock;
  static std::mutex mutex;  // downloads report from other threads
  static std::string last_label;
  static Clock::time_point begun, shown;
  static uint64_t first = 0;
  const std::scoped_lock lock(mutex);
  const auto now = Clock::now();
  if (label != last_label || done < first) last_label = label, begun = now, first = done;
  if (done < all && now - shown < std::chrono::milliseconds(100)) return;
  shown = now;
  const double seconds = std::chrono::duration<double>(now - begun).count();
  progress(transfer_text(label, {done, all, seconds, first}));
}

}  // namespace prism::cli
