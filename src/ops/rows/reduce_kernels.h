// Kernels that reduce rows and columns.
#pragma once

#include <string>

#include "ops/rows/row_source.h"
#include "prism/kernel_ir.h"

namespace prism {

enum class Reduction : uint8_t { sum, mean, max, min, argmax, argmin, finite_argmax };
const char* reduction_name(Reduction kind);
constexpr bool is_arg(Reduction kind) {
  return kind == Reduction::argmax || kind == Reduction::argmin || kind == Reduction::finite_argmax;
}

constexpr bool takes_largest(Reduction kind) {
  return kind == Reduction::max || kind == Reduction::argmax || kind == Reduction::finite_argmax;
}

// Adds the launches that reduce the rows of a source, in two steps if there are few rows. output
// has an element for each row.
void launch_reduction(DeviceCall& call, Reduction kind, const RowBinding& source, const Rows& rows,
                      const DeviceView& output);

}  // namespace prism
