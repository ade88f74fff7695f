// Translates number ranges to grammar rules, digit by digit.
#include "llm/grammar/number_grammar.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace prism::llm {
namespace {

constexpr size_t kOpenDigits = 16;  // an unlimited number still ends

std::string any_digits(size_t count) {
  if (count == 0) return "";
  return count == 1 ? "[0-9]" : fmt::format("[0-9]{{{}}}", count);
}

// Digit strings of equal length from low to high.
std::string between(const std::string& low, const std::string& high) {
  if (low.empty()) return "";
  const size_t rest = low.size() - 1;
  if (low == std::string(low.size(), '0') && high == std::string(low.size(), '9'))
    return any_digits(low.size());
  if (low[0] == high[0])
    return rest == 0 ? fmt::format("\"{}\"", low[0])
                     : fmt::format("\"{}\" {}", low[0], between(low.substr(1), high.substr(1)));
  if (rest == 0) return fmt::format("[{}-{}]", low[0], high[0]);
  char first = low[0], last = high[0];
  std::vector<std::string> ways;
  if (low.substr(1) != std::string(rest, '0')) {
    ways.push_back(fmt::format("\"{}\" {}", first, between(low.substr(1), std::string(rest, '9'))));
    ++first;
  }
  std::string top;
  if (high.substr(1) != std::string(rest, '9')) {
    top = fmt::format("\"{}\" {}", last, between(std::string(rest, '0'), high.substr(1)));
    --last;
  }
  if (first <= last) ways.push_back(fmt::format("[{}-{}] {}", first, last, any_digits(rest)));
  if (!top.empty()) ways.push_back(top);
  return fmt::format("({})", fmt::join(ways, " | "));
}

// Natural numbers from low to high without leading zeros; without high: up to kOpenDigits digits.
std::string natural(uint64_t low, std::optional<uint64_t> high) {
  const std::string first = std::to_string(low);
  const std::string last =
      high ? std::to_string(*high) : std::string(std::max(kOpenDigits, first.size()), '9');
  std::vector<std::string> ways;
  for (size_t digits = first.size(); digits <= last.size(); ++digits) {
    const std::string least = digits == 1 ? "0" : "1" + std::string(digits - 1, '0');
    const std::string from = digits == first.size() ? first : least;
    const std::string to = digits == last.size() ? last : std::string(digits, '9');
    if (digits > first.size() && digits < last.size()) {  // all intermediate lengths at once
      ways.push_back(fmt::format("[1-9] [0-9]{{{},{}}}", digits - 1, last.size() - 2));
      digits = last.size() - 1;
      continue;
    }
    ways.push_back(between(from, to));
  }
  return fmt::format("({})", fmt::join(ways, " | "));
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

constexpr const char* kDecimals = "(\".\" [0-9]{1,16})?";

// Decimals with an absolute value from low to high.
std::string natural_decimal(uint64_t low, std::optional<uint64_t> high) {
  if (!high) return fmt::format("({} {})", natural(low, high), kDecimals);
  const std::string top = fmt::format("\"{}\" (\".\" \"0\"{{1,16}})?", *high);
  if (low == *high) return fmt::format("({})", top);
  return fmt::format("({} {} | {})", natural(low, *high - 1), kDecimals, top);
}

template <class Natural>
std::string with_sign(std::optional<int64_t> minimum, std::optional<int64_t> maximum,
                      uint64_t least_negative, Natural&& range) {
  std::vector<std::string> ways;
  if (!minimum || *minimum < 0) {
    const uint64_t from = maximum && *maximum < 0 ? magnitude(*maximum) : least_negative;
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

}  // namespace

std::string integer_grammar(std::optional<int64_t> minimum, std::optional<int64_t> maximum) {
  return with_sign(minimum, maximum, 1, natural);
}

std::string decimal_grammar(std::optional<int64_t> minimum, std::optional<int64_t> maximum) {
  return with_sign(minimum, maximum, 0, natural_decimal);
}

}  // namespace prism::llm
