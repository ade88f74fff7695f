// Limits of numbers in JSON schemas, as rules.
#include "llm/grammar/schema_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "llm/grammar/number_grammar.h"

namespace prism::llm::json_schema {
namespace {

// The number of a limit. Throws unless it is one that can be counted in.
double limit(const Json& value, const char* key, const std::string& place) {
  if (!value.is_number()) fail(place, fmt::format("{} must be a number", key));
  const double number = value.get<double>();
  if (!(std::abs(number) < 9e15))
    fail(place, fmt::format("{} is {}; limits beyond 9e15 are not supported", key, value.dump()),
         ErrorCode::kNotSupported);
  return number;
}

// One end of a range, and whether the end itself is outside.
struct End {
  double number = 0;
  bool is_exclusive = false;
};
std::optional<End> range_end(const Json& schema, const char* key, const char* exclusive, int step,
                             const std::string& place) {
  std::optional<End> end;
  const Json* const outside = find(schema, exclusive);
  // Draft 4 of JSON schema has a boolean beside the limit.
  if (const Json* value = find(schema, key))
    end = End{limit(*value, key, place), outside && *outside == Json(true)};
  if (!outside || outside->is_boolean()) return end;
  const End other{limit(*outside, exclusive, place), true};
  const bool is_closer =
      !end || (step > 0 ? other.number >= end->number : other.number <= end->number);
  return is_closer ? other : end;
}

std::optional<int64_t> rounded_inwards(const std::optional<End>& end, int step) {
  if (!end) return std::nullopt;
  const double whole = step > 0 ? std::ceil(end->number) : std::floor(end->number);
  return static_cast<int64_t>(whole) + (end->is_exclusive && whole == end->number ? step : 0);
}

// The decimals that a number is written with.
size_t decimals_of(double number, const std::string& place) {
  constexpr size_t kMost = 9;  // 9e15 with more is beyond 64 bits
  for (size_t decimals = 0; decimals <= kMost; ++decimals)
    if (std::strtod(fmt::format("{:.{}f}", number, decimals).c_str(), nullptr) == number &&
        std::abs(number) * std::pow(10.0, static_cast<double>(decimals)) < 9e15)
      return decimals;
  fail(place, fmt::format("the limit {} has too many digits", number), ErrorCode::kNotSupported);
}

}  // namespace

std::optional<std::string> number_rule(const Json& schema, const std::string& type,
                                       const std::string& place) {
  const auto least = range_end(schema, "minimum", "exclusiveMinimum", 1, place);
  const auto most = range_end(schema, "maximum", "exclusiveMaximum", -1, place);
  if (!least && !most) return std::nullopt;
  std::string rule;
  if (type == "integer") {
    const auto from = rounded_inwards(least, 1), to = rounded_inwards(most, -1);
    if (!from || !to || *from <= *to) rule = integer_grammar(from, to);
  } else {
    size_t decimals = 0;
    for (const auto& end : {least, most})
      if (end) decimals = std::max(decimals, decimals_of(end->number, place));
    const auto scaled = [&](const std::optional<End>& end) -> std::optional<DecimalLimit> {
      if (!end) return std::nullopt;
      const double units = end->number * std::pow(10.0, static_cast<double>(decimals));
      if (!(std::abs(units) < 9e15))
        fail(place, fmt::format("the limit {} has too many digits", end->number),
             ErrorCode::kNotSupported);
      return DecimalLimit{std::llround(units), end->is_exclusive};
    };
    const auto from = scaled(least), to = scaled(most);
    if (!from || !to || from->value <= to->value) rule = decimal_grammar(from, to, decimals);
  }
  if (rule.empty()) fail(place, "there is no number between the limits");
  return rule;
}

}  // namespace prism::llm::json_schema
