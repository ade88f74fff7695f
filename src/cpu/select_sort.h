// The k best elements of a row, and sorted rows, with the indices of the elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prism::cpu {

// NaN counts as larger than everything, as in most frameworks: first in descending order, last in
// ascending order. The order is stable in both directions: among equal elements (0 and -0 are
// equal) the lower index comes first. T is float, double, int32_t or int64_t, Index int32_t or
// int64_t.

// The k largest of n elements in descending order (or the k smallest in ascending order). values
// and indices have k elements; either may be null. Throws Error if k is above n.
template <class T, class Index>
void top_k(const T* x, size_t n, size_t k, bool largest, T* values, Index* indices);

// All elements in order; values and indices have n elements; either may be null. values may be x.
template <class T, class Index>
void sort(const T* x, size_t n, bool descending, T* values, Index* indices);

}  // namespace prism::cpu
