// Shapes and layouts: the length of each axis of a tensor, and the strides of its elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#pragma GCC visibility push(default)

namespace prism {

inline constexpr int kMaxRank = 8;

// The lengths of a tensor's axes, outermost first. Negative axes count from the end.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> lengths);
  explicit Shape(std::span<const int64_t> lengths);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return lengths_[static_cast<size_t>(index(axis))]; }
  int64_t& operator[](int axis) { return lengths_[static_cast<size_t>(index(axis))]; }
  int64_t elements() const;
  const int64_t* begin() const { return lengths_.data(); }
  const int64_t* end() const { return lengths_.data() + rank_; }
  bool operator==(const Shape& other) const;

  void append(int64_t length);
  void insert(int axis, int64_t length);
  void erase(int axis);
  std::string text() const;  // "[2, 3]"

 private:
  int index(int axis) const;
  std::array<int64_t, kMaxRank> lengths_ = {};
  int rank_ = 0;
};

// The axis counted from the start; throws kInvalidArgument naming op if there is no such axis.
int checked_axis(const char* op, int axis, int rank);

// The broadcast shape of two operands by NumPy's rules; kInvalidArgument names op and both shapes.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

// The addresses of a tensor's elements in the storage of a node: strides and offset in elements.
struct Layout {
  Shape shape;
  std::array<int64_t, kMaxRank> strides = {};
  int64_t offset = 0;

  static Layout dense(const Shape& shape);
  int64_t stride(int axis) const;
  bool is_dense() const;  // row-major without gaps; the offset may be anything
  // The same elements with another shape, without a copy; nullopt if strides cannot express it.
  std::optional<Layout> reshaped(const Shape& to) const;
  Layout broadcast_to(const Shape& to) const;  // new and unit axes get stride 0; shapes must fit
  bool operator==(const Layout& other) const;
};

// Merges neighbouring axes that are contiguous in every layout and drops axes of length 1, so that
// loops have as few axes as possible. All layouts must have the same shape.
void collapse(std::span<Layout> layouts);

}  // namespace prism

#pragma GCC visibility pop
