// Translates number ranges to grammar rules, digit by digit.
#include "llm/grammar/number_grammar.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace prism::llm {
namespace {

constexpr size_t kOpenDigits = 16;  // an unlimited number still ends

// Here and below, a point stands before the last `decimals` of the digits, if there are any.
std::string any_digits(size_t count, size_t decimals = 0) {
  if (decimals > 0 && count >= decimals)
    return fmt::format("{} \".\" {}", any_digits(count - decimals), any_digits(decimals));
  if (count == 0) return "";
  return count == 1 ? "[0-9]" : fmt::format("[0-9]{{{}}}", count);
}

// Digit strings of equal length from low to high.
std::string between(const std::string& low, const std::string& high, size_t decimals = 0) {
  if (low.empty()) return "";
  if (decimals == low.size()) return "\".\" " + between(low, high);
  const size_t rest = low.size() - 1;
  if (low == std::string(low.size(), '0') && high == std::string(low.size(), '9'))
    return any_digits(low.size(), decimals);
  if (low[0] == high[0])
    return rest == 0
               ? fmt::format("\"{}\"", low[0])
               : fmt::format("\"{}\" {}", low[0], between(low.substr(1), high.substr(1), decimals));
  if (rest == 0) return fmt::format("[{}-{}]", low[0], high[0]);
  char first = low[0], last = high[0];
  std::vector<std::string> ways;
  if (low.substr(1) != std::string(rest, '0')) {
    ways.push_back(
        fmt::format("\"{}\" {}", first, between(low.substr(1), std::string(rest, '9'), decimals)));
    ++first;
  }
  std::string top;
  if (high.substr(1) != std::string(rest, '9')) {
    top = fmt::format("\"{}\" {}", last, between(std::string(rest, '0'), high.substr(1), decimals));
    --last;
  }
  if (first <= last)
    ways.push_back(fmt::format("[{}-{}] {}", first, last, any_digits(rest, decimals)));
  if (!top.empty()) ways.push_back(top);
  return fmt::format("({})", fmt::join(ways, " | "));
}

// The digits of a number, at least one of them before the point.
std::string padded(uint64_t number, size_t decimals) {
  return fmt::format("{:0{}}", number, decimals + 1);
}

// Natural numbers from low to high without leading zeros; without high: up to kOpenDigits digits.
std::string natural(uint64_t low, std::optional<uint64_t> high, size_t decimals = 0) {
  const std::string first = padded(low, decimals);
  const std::string last = high ? padded(*high, decimals)
                                : std::string(std::max(kOpenDigits + decimals, first.size()), '9');
  std::vector<std::string> ways;
  for (size_t digits = first.size(); digits <= last.size(); ++digits) {
    const std::string from = digits == first.size() ? first : "1" + std::string(digits - 1, '0');
    const std::string to = digits == last.size() ? last : std::string(digits, '9');
    if (digits > first.size() && digits < last.size()) {  // all intermediate lengths at once
      ways.push_back(fmt::format("[1-9] [0-9]{{{},{}}} {}", digits - 1 - decimals,
                                 last.size() - 2 - decimals, any_digits(decimals, decimals)));
      digits = last.size() - 1;
      continue;
    }
    ways.push_back(between(from, to, decimals));
  }
  return fmt::format("({})", fmt::join(ways, " | "));
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

template <class Natural>
std::string with_sign(std::optional<int64_t> minimum, std::optional<int64_t> maximum,
                      Natural&& range) {
  std::vector<std::string> ways;
  if (!minimum || *minimum < 0) {
    const uint64_t from = maximum && *maximum < 0 ? magnitude(*maximum) : 1;
    std::optional<uint64_t> to;
    if (minimum) to = magnitude(*minimum);
    ways.push_back("\"-\" " + range(from, to));
  }
  if (!maximum || *maximum >= 0) {
    const uint64_t from = minimum && *minimum > 0 ? magnitude(*minimum) : 0;
    std::optional<uint64_t> to;
    if (maximum) to = magnitude(*maximum);
    ways.push_back(range(from, to));
  }
  return fmt::format("({})", fmt::join(ways, " | "));
}

struct Magnitude {
  uint64_t value = 0;
  bool is_exclusive = false;
};

// Appends the ways to write decimals with an absolute value from low to high after a sign.
void add_decimals(std::vector<std::string>& ways, const char* sign, Magnitude low,
                  std::optional<Magnitude> high, size_t decimals) {
  const bool has_point = decimals > 0;
  const char* const any = has_point ? "[0-9]{0,16}" : "(\".\" [0-9]{1,16})?";
  const char* const zeros = has_point ? "\"0\"{0,16}" : "(\".\" \"0\"{1,16})?";
  const char* const more =
      has_point ? "\"0\"{0,15} [1-9] [0-9]{0,15}" : "\".\" \"0\"{0,15} [1-9] [0-9]{0,15}";
  const auto add = [&](const std::string& digits, const char* tail) {
    ways.push_back(fmt::format("{} {} {}", sign, digits, tail));
  };
  const auto exactly = [&](uint64_t value) {
    const std::string digits = padded(value, decimals);
    return between(digits, digits, decimals);
  };
  if (high && low.value > high->value) return;
  const bool is_one = high && low.value == high->value;
  if (low.is_exclusive && !is_one) add(exactly(low.value), more);
  const uint64_t first = low.value + (low.is_exclusive ? 1 : 0);
  if (!high)
    add(natural(first, {}, decimals), any);
  else if (first < high->value)
    add(natural(first, high->value - 1, decimals), any);
  if (high && !high->is_exclusive && !(is_one && low.is_exclusive))
    add(exactly(high->value), zeros);
  if (!has_point) return;
  // Integers, rounded inwards.
  uint64_t one = 1;
  for (size_t i = 0; i < decimals; ++i) one *= 10;
  const uint64_t least = first / one + (first % one != 0 ? 1 : 0);
  if (!high) return add(natural(least, {}), "");
  const uint64_t end = high->value + (high->is_exclusive ? 0 : 1);  // the first that is too large
  if (end > 0 && least <= (end - 1) / one) add(natural(least, (end - 1) / one), "");
}

}  // namespace

std::string integer_grammar(std::optional<int64_t> minimum, std::optional<int64_t> maximum) {
  return with_sign(minimum, maximum,
                   [](uint64_t low, std::optional<uint64_t> high) { return natural(low, high); });
}

std::string decimal_grammar(std::optional<DecimalLimit> minimum,
                            std::optional<DecimalLimit> maximum, size_t decimals) {
  const auto magnitude_of = [](const DecimalLimit& limit) {
    return Magnitude{magnitude(limit.value), limit.is_exclusive};
  };
  const auto end_of = [&](const std::optional<DecimalLimit>& limit) {
    return limit ? std::optional(magnitude_of(*limit)) : std::nullopt;
  };
  std::vector<std::string> ways;
  if (!minimum || minimum->value < 0) {
    const bool is_below = maximum && maximum->value <= 0;
    add_decimals(ways, "\"-\"", is_below ? magnitude_of(*maximum) : Magnitude{}, end_of(minimum),
                 decimals);
  }
  if (!maximum || maximum->value >= 0) {
    const bool is_above = minimum && minimum->value >= 0;
    add_decimals(ways, "", is_above ? magnitude_of(*minimum) : Magnitude{}, end_of(maximum),
                 decimals);
  }
  return ways.empty() ? "" : fmt::format("({})", fmt::join(ways, " | "));
}

}  // namespace prism::llm
