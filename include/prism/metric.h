// Metric: how vector search compares a query with a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#pragma GCC visibility push(default)

namespace prism {

// cosine and dot are similarities: the largest is best. l2 (the squared Euclidean distance) and
// hamming (the number of different bits) are distances: the smallest is best.
enum class Metric : uint8_t { cosine, dot, l2, hamming };

const char* metric_name(Metric metric);
std::optional<Metric> parse_metric(std::string_view name);
constexpr bool is_distance(Metric metric) {
  return metric == Metric::l2 || metric == Metric::hamming;
}

}  // namespace prism

#pragma GCC visibility pop
