// Concatenation, splitting, padding and repetition.
#pragma once

#include <span>
#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// Joins along an existing axis; all other axes and the types must be equal.
Tensor concat(std::span<const Tensor> tensors, int axis);
Tensor concat(std::initializer_list<Tensor> tensors, int axis);
// Joins along a new axis.
Tensor stack(std::span<const Tensor> tensors, int axis);
Tensor stack(std::initializer_list<Tensor> tensors, int axis);

// Views of parts with these lengths along an axis; the lengths must add up to the axis.
std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> lengths, int axis);
std::vector<Tensor> split(const Tensor& x, std::initializer_list<int64_t> lengths, int axis);
// Views of equal parts.
std::vector<Tensor> split(const Tensor& x, int64_t parts, int axis);

struct Edges {
  int64_t before = 0, after = 0;
};
// Adds a border of one value. Edges apply to the last axes, in order; earlier axes get no border.
Tensor pad(const Tensor& x, std::span<const Edges> edges, double value = 0);
Tensor pad(const Tensor& x, std::initializer_list<Edges> edges, double value = 0);

// Repeats each element along an axis, like numpy.repeat: [a, b] becomes [a, a, b, b]. Without an
// axis x is flattened first.
Tensor repeat(const Tensor& x, int64_t times, int axis);
Tensor repeat(const Tensor& x, int64_t times);
// Repeats the whole tensor along each axis, like numpy.tile: [a, b] becomes [a, b, a, b]. Fewer
// counts than axes apply to the last axes; more counts add axes in front.
Tensor tile(const Tensor& x, std::span<const int64_t> times);
Tensor tile(const Tensor& x, std::initializer_list<int64_t> times);
Tensor tile(const Tensor& x, int64_t times);
Tensor flip(const Tensor& x, int axis);  // a view
// Shifts elements by `places` along an axis; those beyond the end wrap to the start.
Tensor roll(const Tensor& x, int64_t places, int axis);

}  // namespace prism

#pragma GCC visibility pop
