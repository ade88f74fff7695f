// Numbers, sizes and rates as text.
#include "base/units.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace prism {

std::string number_text(double value) {
  constexpr int kDigits = 3, kMostDecimals = 12;
  const double size = std::fabs(value);
  if (size == 0 || !std::isfinite(value)) return fmt::format("{:.0f}", value);
  int decimals = kDigits - 1 - static_cast<int>(std::floor(std::log10(size)));
  // Rounding may add a digit: 9.996 is "10.0".
  if (size + 0.5 * std::pow(10.0, -decimals) >= std::pow(10.0, kDigits - decimals)) --decimals;
  return fmt::format("{:.{}f}", value, std::clamp(decimals, 0, kMostDecimals));
}

std::string size_text(uint64_t bytes) {
  if (bytes == UINT64_MAX) return "unknown";
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  const char* unit = "KiB";
  auto value = static_cast<double>(bytes) / 1024;
  for (const char* larger : {"MiB", "GiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return number_text(value) + " " + unit;
}

std::string exact_count_text(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string rate_text(double per_second, const char* unit) {
  const char* prefix = "";
  for (const char* larger : {"K", "M", "G", "T"}) {
    if (per_second < 999.5) break;
    per_second /= 1000;
    prefix = larger;
  }
  return fmt::format("{} {}{}", number_text(per_second), prefix, unit);
}

}  // namespace prism
