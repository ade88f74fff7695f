// Putting tensors together, taking them apart, and longer versions of one.
#pragma once

#include <span>
#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// One after the other along an axis; all other axes must be equal, and the types.
Tensor concat(std::span<const Tensor> tensors, int axis);
Tensor concat(std::initializer_list<Tensor> tensors, int axis);
// Along a new axis.
Tensor stack(std::span<const Tensor> tensors, int axis);
Tensor stack(std::initializer_list<Tensor> tensors, int axis);

// Views of parts of these lengths along an axis; the lengths must add up.
std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> lengths, int axis);
std::vector<Tensor> split(const Tensor& x, std::initializer_list<int64_t> lengths, int axis);
// Into equal parts.
std::vector<Tensor> split(const Tensor& x, int64_t parts, int axis);

struct Edges {
  int64_t before = 0, after = 0;
};
// One value around x: edges of the last axes, the last one's last; axes before them get none.
Tensor pad(const Tensor& x, std::span<const Edges> edges, double value = 0);
Tensor pad(const Tensor& x, std::initializer_list<Edges> edges, double value = 0);

// [a, b] along an axis becomes [a, b, a, b] for two times.
Tensor repeat(const Tensor& x, int64_t times, int axis);
// [a, b] becomes [a, a, b, b].
Tensor repeat_elements(const Tensor& x, int64_t times, int axis);
Tensor flip(const Tensor& x, int axis);  // a view
// Elements move by `places` along an axis; what falls off the end comes in at the start.
Tensor roll(const Tensor& x, int64_t places, int axis);

}  // namespace prism

#pragma GCC visibility pop
