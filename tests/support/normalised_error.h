// The error by which tests compare the logits of models.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

namespace prism::test {

// The sum of squared differences over the sum of squares; infinite if the sizes differ.
inline double normalised_error(std::span<const float> found, std::span<const float> wanted) {
  if (found.size() != wanted.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double by = static_cast<double>(found[i]) - static_cast<double>(wanted[i]);
    difference += by * by;
    size += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
  }
  return difference / size;
}

}  // namespace prism::test
