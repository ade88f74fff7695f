// Lists: divides the rows of a segment into clusters.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/device.h"
#include "search/methods/code_space.h"

namespace prism::search {

// How the rows of a segment are divided into lists.
struct Lists {
  std::vector<float> centers;   // [lists][width]
  std::vector<uint32_t> rows;   // in the order of the lists
  std::vector<uint32_t> begin;  // [lists + 1]
};
// count 0: chosen by the number of rows. Assignments are computed on the device.
Lists make_lists(const Device& device, Metric metric, uint64_t width, uint64_t rows, uint64_t count,
                 const CodeSpace::RowReader& row);

}  // namespace prism::search
