// Words shares of limits and the advice on them.
#include "cli/bench_text.h"

#include <fmt/format.h>

#include "base/units.h"

namespace prism::cli {

// From this share on, memory is assumed to limit a model: memory-bound models measured on CPUs
// reach 75% to 95%.
constexpr double kMemoryBound = 0.7;

std::string peaks_text(const DevicePeaks& peaks) {
  return fmt::format("measured peaks: {}, f32 products {}, f16 {}",
                     rate_text(peaks.bandwidth, "B/s"), rate_text(peaks.f32_rate, "FLOP/s"),
                     rate_text(peaks.f16_rate, "FLOP/s"));
}

std::string share_text(const BenchResult& result) {
  if (result.in_cache) return "in cache";
  return fmt::format("{:.0f}% of {}", result.share * 100, limit_name(result.limit));
}

std::string token_share_text(double rate, double limit, BenchLimit limited_by) {
  if (rate <= limit)
    return fmt::format("{:.0f}% of {} by {}", 100 * rate / limit, number_text(limit),
                       limit_name(limited_by));
  return limited_by == BenchLimit::bandwidth
             ? fmt::format("in cache; memory allows {}", number_text(limit))
             : fmt::format("more than the measured {} by {}", number_text(limit),
                           limit_name(limited_by));
}

std::string cpu_decode_advice(double share) {
  if (share > 1)
    return "advice: the weights fit the CPU's caches, so its memory does not limit this model";
  const std::string of = fmt::format("advice: {:.0f}% of what the memory allows", 100 * share);
  if (share >= kMemoryBound)
    return of + "; a smaller quantisation writes faster, in proportion to its size";
  return of + ", so the memory does not limit this model; a smaller quantisation may not be faster";
}

}  // namespace prism::cli
