// Helpers of conformance cases: types, random inputs and iteration over layouts.
#pragma once

#include <functional>

#include "conformance/conformance.h"

namespace prism {

inline constexpr DType kAllTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,
                                      DType::u8,  DType::i16, DType::i32,  DType::i64, DType::b1};
inline constexpr DType kFloatTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64};

struct DrawRange {
  double low, high;
};
// A range of values that the type represents exactly.
inline DrawRange draw_range(DType type) {
  if (type == DType::b1) return {0, 1};
  if (type == DType::u8) return {0, 60};
  return is_float(type) ? DrawRange{-2, 2} : DrawRange{-60, 60};
}
inline CaseInput draw(CaseRandom& random, const Shape& shape, DType type) {
  const DrawRange range = draw_range(type);
  return random.input(shape, type, range.low, range.high);
}

// Calls visit(i, place) for each element i in row-major order, with its place in the storage.
inline void walk(const Layout& layout, const std::function<void(size_t, size_t)>& visit) {
  const int64_t count = layout.shape.elements();
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, place = layout.offset;
    for (int axis = layout.shape.rank() - 1; axis >= 0; --axis) {
      place += rest % layout.shape[axis] * layout.stride(axis);
      rest /= layout.shape[axis];
    }
    visit(static_cast<size_t>(i), static_cast<size_t>(place));
  }
}

// The layout of a view of a dense tensor with this shape.
inline Layout layout_of(const Shape& shape, const std::function<Tensor(const Tensor&)>& view) {
  return view(empty(shape, DType::f32, Device::cpu())).layout();
}

// The product of the lengths of axes [first, last).
inline int64_t span_of(const Shape& shape, int first, int last) {
  int64_t product = 1;
  for (int axis = first; axis < last; ++axis) product *= shape[axis];
  return product;
}

}  // namespace prism
