// k-means: centers of vectors, trained on any device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prism/device.h"

namespace prism::search {

// The center with the least squared distance to each row of x [][width].
std::vector<uint32_t> assign_rows(const Device& device, std::span<const float> x,
                                  std::span<const float> centers, uint64_t width);

// `count` centers [count][width] of the rows x [][width], at least as many as centers.
std::vector<float> train_centers(const Device& device, std::span<const float> x, uint64_t width,
                                 uint64_t count);

}  // namespace prism::search
