// Shapes, broadcasting and layouts.
#include "prism/shape.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "prism/error.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> lengths)
    : Shape(std::span<const int64_t>(lengths.begin(), lengths.size())) {}

Shape::Shape(std::span<const int64_t> lengths) {
  for (const int64_t length : lengths) append(length);
  // The element count must fit 63 bits, even if another length is 0.
  int64_t product = 1;
  for (const int64_t length : lengths) {
    if (length > 0 && __builtin_mul_overflow(product, length, &product))
      fail(fmt::format("shape [{}]: more elements than can be counted", fmt::join(lengths, ", ")));
  }
}

int Shape::index(int axis) const { return axis < 0 ? axis + rank_ : axis; }

int64_t Shape::elements() const {
  int64_t product = 1;
  for (const int64_t length : *this) product *= length;
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

void Shape::append(int64_t length) { insert(rank_, length); }

void Shape::insert(int axis, int64_t length) {
  if (length < 0) fail(fmt::format("shape: an axis of length {}; lengths are 0 or more", length));
  if (rank_ == kMaxRank) fail(fmt::format("shape: more than {} axes", kMaxRank));
  for (int i = rank_; i > axis; --i)
    lengths_[static_cast<size_t>(i)] = lengths_[static_cast<size_t>(i - 1)];
  lengths_[static_cast<size_t>(axis)] = length;
  ++rank_;
}

void Shape::erase(int axis) {
  for (int i = axis; i + 1 < rank_; ++i)
    lengths_[static_cast<size_t>(i)] = lengths_[static_cast<size_t>(i + 1)];
  --rank_;
}

std::string Shape::text() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

int checked_axis(const char* op, int axis, int rank) {
  if (axis < -rank || axis >= rank) {
    fail(rank == 0 ? fmt::format("{}: axis {} of a scalar, which has none", op, axis)
                   : fmt::format("{}: axis {} of a tensor with {} axes; use {} to {}", op, axis,
                                 rank, -rank, rank - 1));
  }
  return axis < 0 ? axis + rank : axis;
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  Shape result = a.rank() >= b.rank() ? a : b;
  const Shape& other = a.rank() >= b.rank() ? b : a;
  for (int i = 1; i <= other.rank(); ++i) {
    const int64_t x = result[-i], y = other[-i];
    if (x != y && x != 1 && y != 1) {
      fail(fmt::format(
          "{}: shapes {} and {} do not fit: axis {} from the end is {} and {}, which must be equal "
          "or 1",
          op, a.text(), b.text(), i, a[-i], b[-i]));
    }
    result[-i] = x == 1 ? y : x;
  }
  return result;
}

Layout Layout::dense(const Shape& shape) {
  Layout layout{shape, {}, 0};
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    layout.strides[static_cast<size_t>(axis)] = step;
    step *= std::max<int64_t>(shape[axis], 1);
  }
  return layout;
}

int64_t Layout::stride(int axis) const {
  return strides[static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis)];
}

bool Layout::is_dense() const {
  if (shape.elements() == 0) return true;
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && stride(axis) != step) return false;
    step *= shape[axis];
  }
  return true;
}

std::optional<Layout> Layout::reshaped(const Shape& to) const {
  Layout result{to, {}, offset};
  if (is_dense()) {
    result.strides = dense(to).strides;
    return result;
  }
  // Each run of old axes with one common stride must consist of whole new axes.
  Layout runs = *this;
  collapse(std::span(&runs, 1));
  int run = runs.shape.rank() - 1;
  int64_t left = run >= 0 ? runs.shape[run] : 1, step = run >= 0 ? runs.stride(run) : 1;
  for (int axis = to.rank() - 1; axis >= 0; --axis) {
    if (to[axis] == 1) continue;
    if (left == 1 && run > 0) {
      --run;
      left = runs.shape[run];
      step = runs.stride(run);
    }
    if (left % to[axis] != 0) return std::nullopt;
    result.strides[static_cast<size_t>(axis)] = step;
    left /= to[axis];
    step *= to[axis];
  }
  return result;
}

Layout Layout::broadcast_to(const Shape& to) const {
  Layout result{to, {}, offset};
  for (int i = 1; i <= shape.rank(); ++i) {
    if (shape[-i] != 1 || to[-i] == 1)
      result.strides[static_cast<size_t>(to.rank() - i)] = stride(-i);
  }
  return result;
}

bool Layout::operator==(const Layout& other) const {
  return shape == other.shape && offset == other.offset &&
         std::equal(strides.begin(), strides.begin() + shape.rank(), other.strides.begin());
}

void collapse(std::span<Layout> layouts) {
  if (layouts.empty()) return;
  std::array<Layout, 16> merged;
  const Shape shape = layouts[0].shape;
  Shape result;
  for (size_t l = 0; l < layouts.size(); ++l) merged[l].offset = layouts[l].offset;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const bool joins = result.rank() > 0 && std::ranges::all_of(layouts, [&](const Layout& layout) {
                         const size_t l = static_cast<size_t>(&layout - layouts.data());
                         const int64_t outer =
                             merged[l].strides[static_cast<size_t>(result.rank() - 1)];
                         return outer == layout.stride(axis) * shape[axis];
                       });
    if (joins)
      result[-1] *= shape[axis];
    else
      result.append(shape[axis]);
    for (size_t l = 0; l < layouts.size(); ++l)
      merged[l].strides[static_cast<size_t>(result.rank() - 1)] = layouts[l].stride(axis);
  }
  for (size_t l = 0; l < layouts.size(); ++l) {
    merged[l].shape = result;
    layouts[l] = merged[l];
  }
}

}  // namespace prism
