// The names of metrics.
#include "prism/metric.h"

namespace prism {

const char* metric_name(Metric metric) {
  switch (metric) {
    case Metric::cosine:
      return "cosine";
    case Metric::dot:
      return "dot";
    case Metric::l2:
      return "l2";
    default:
      return "hamming";
  }
}

std::optional<Metric> parse_metric(std::string_view name) {
  for (const Metric metric : {Metric::cosine, Metric::dot, Metric::l2, Metric::hamming})
    if (name == metric_name(metric)) return metric;
  return std::nullopt;
}

}  // namespace prism
