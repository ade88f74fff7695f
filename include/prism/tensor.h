// Tensor: values with a shape, an element type and a device, computed when they are needed.
//
//   Tensor a = from_vector({1.0f, 2.0f, 3.0f}, {3}), b = full({3}, 2.0);
//   Tensor c = a * b + 1.0;                       // extends the graph; nothing runs
//   std::vector<float> v = c.to_vector<float>();  // plans, runs and reads
//   std::cout << c.sum() << c[0];
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "prism/device.h"
#include "prism/element_type.h"
#include "prism/shape.h"

#pragma GCC visibility push(default)

namespace prism {

struct Node;
struct Storage;
class TensorOrNumber;  // prism/ops/elementwise.h

using Axes = std::vector<int>;  // axes of a tensor; negative ones count from the end

// A range of one axis, like Python's start:stop:step. Without a stop it extends to the end.
struct Slice {
  int64_t start = 0;
  std::optional<int64_t> stop = std::nullopt;
  int64_t step = 1;
};

// The element type that stores a C++ number: f32, f64, integers by size and sign, b1 for bool.
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_integral_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>,
                "tensors hold float, double and integers of up to 64 bits");
  if constexpr (std::is_same_v<T, bool>) return DType::b1;
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::f32 : DType::f64;
  switch (sizeof(T)) {
    case 1:
      return std::is_signed_v<T> ? DType::i8 : DType::u8;
    case 2:
      return std::is_signed_v<T> ? DType::i16 : DType::u16;
    case 4:
      return std::is_signed_v<T> ? DType::i32 : DType::u32;
    default:
      return std::is_signed_v<T> ? DType::i64 : DType::u64;
  }
}

// A handle to a node of the graph. Copies are cheap and share the values. No operation changes a
// value that another handle sees: after `b = a; a += 1` b has its old values.
class Tensor {
 public:
  Tensor() = default;  // an empty handle
  Tensor(std::shared_ptr<Node> node, uint32_t output);
  Tensor(std::shared_ptr<Node> node, uint32_t output, Layout layout)
      : node_(std::move(node)), output_(output), layout_(layout) {}

  explicit operator bool() const { return node_ != nullptr; }
  const Shape& shape() const { return layout_.shape; }
  int ndim() const { return layout_.shape.rank(); }
  int64_t size() const { return layout_.shape.elements(); }  // the number of elements, like numel()
  int64_t size(int axis) const;  // the length of an axis; throws kInvalidArgument if out of range
  int64_t numel() const { return size(); }
  ElementType dtype() const;
  const Device& device() const;
  bool is_evaluated() const;
  // Synonyms for internal code.
  int rank() const { return ndim(); }
  int64_t elements() const { return size(); }
  ElementType type() const { return dtype(); }

  // --- views: the same elements with another layout, without a copy. reshape() copies if strides
  // cannot express the view.
  Tensor reshape(std::span<const int64_t> lengths) const;  // one may be -1: inferred
  Tensor reshape(std::initializer_list<int64_t> lengths) const;
  Tensor reshape(const Shape& shape) const;
  Tensor transpose(int axis_a = -2, int axis_b = -1) const;
  Tensor permute(std::span<const int> axes) const;
  Tensor permute(std::initializer_list<int> axes) const;
  Tensor slice(int axis, int64_t start, int64_t stop, int64_t step = 1) const;
  Tensor slice(std::span<const Slice> slices) const;  // one for each of the first axes
  Tensor select(int axis, int64_t index) const;       // one index; removes the axis
  Tensor expand(const Shape& shape) const;            // broadcasts to the shape
  Tensor squeeze(int axis) const;
  Tensor unsqueeze(int axis) const;
  Tensor flatten() const { return reshape(std::initializer_list<int64_t>{-1}); }

  // --- indexing of the first axis, as in NumPy. Negative numbers count from the end.
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor operator[](const Slice& range) const { return slice(std::span(&range, 1)); }
  // Integers select rows (gather_rows). A bool mask selects the elements where it is true; its
  // shape must be that of the first axes. A mask is evaluated at once, since it determines the
  // shape. (A template, so that braces always mean a Slice.)
  template <class T, class = std::enable_if_t<std::is_same_v<T, Tensor>>>
  Tensor operator[](const T& indices_or_mask) const {
    return rows_at(indices_or_mask);
  }

  // --- data
  const Tensor& eval() const;             // computes the values now; returns itself
  Tensor to(const Device& device) const;  // a copy on the device; itself if already there
  Tensor astype(ElementType type) const;  // cast()
  Tensor contiguous() const;              // the same values in row-major order
  // Computes, waits and reads. T must be the type of the elements: kInvalidArgument names both.
  // f16 and bf16 are read as the bits of a uint16_t, bool as uint8_t.
  template <class T>
  std::vector<T> to_vector() const {
    std::vector<T> values(static_cast<size_t>(elements()));
    read(std::as_writable_bytes(std::span(values)), dtype_of<T>());
    return values;
  }
  std::vector<double> to_doubles() const;   // any plain type, converted
  std::vector<std::byte> to_bytes() const;  // any plain type, as stored, in row-major order
  double item() const;                      // the value of a tensor with one element
  std::string text() const;  // readable values (long axes abbreviated), shape, type and device

  // --- gradients (prism/grad.h)
  Tensor detach() const;  // the same values without history
  bool requires_grad() const;
  // Makes backward() accumulate a gradient here. Allowed on floats whose history requires no
  // gradients; a computed tensor or a view becomes a leaf with the same values. Returns itself.
  Tensor& set_requires_grad(bool wanted = true);
  Tensor grad() const;    // accumulated by backward(); an empty tensor before
  void zero_grad();       // clears it
  void backward() const;  // adds to grad() of every leaf that requires gradients

  // --- the functions of prism/ops.h as methods
  Tensor sum(const Axes& axes = {}, bool keep_dims = false) const;
  Tensor mean(const Axes& axes = {}, bool keep_dims = false) const;
  Tensor variance(const Axes& axes = {}, double correction = 0, bool keep_dims = false) const;
  Tensor max(const Axes& axes = {}, bool keep_dims = false) const;
  Tensor min(const Axes& axes = {}, bool keep_dims = false) const;
  Tensor all(const Axes& axes = {}, bool keep_dims = false) const;
  Tensor any(const Axes& axes = {}, bool keep_dims = false) const;
  Tensor argmax(int axis = -1, bool keep_dims = false) const;
  Tensor argmin(int axis = -1, bool keep_dims = false) const;
  Tensor cumsum(int axis = -1) const;
  Tensor softmax(int axis = -1) const;
  Tensor matmul(const Tensor& other) const;
  Tensor pow(const TensorOrNumber& exponent) const;
  Tensor clamp(double low, double high) const;
  Tensor abs() const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor square() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;

  // x += y is x = x + y: it makes a new tensor, and other handles keep the old one. Under NoGrad a
  // leaf that requires gradients remains one and keeps its grad(), for the training update.
  Tensor& operator+=(const TensorOrNumber& other);
  Tensor& operator-=(const TensorOrNumber& other);
  Tensor& operator*=(const TensorOrNumber& other);
  Tensor& operator/=(const TensorOrNumber& other);

  const std::shared_ptr<Node>& node() const { return node_; }
  uint32_t output() const { return output_; }
  const Layout& layout() const { return layout_; }

 private:
  Tensor with(const Layout& layout) const { return {node_, output_, layout}; }
  void read(std::span<std::byte> to, DType as) const;
  Tensor rows_at(const Tensor& indices_or_mask) const;
  bool is_whole_leaf() const;
  Tensor as_leaf() const;
  Tensor& assign(const Tensor& updated);

  std::shared_ptr<Node> node_;
  uint32_t output_ = 0;
  Layout layout_;
};

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);  // writes text()

// --- creation. An empty device means default_device().
Device default_device();  // init_backend() chooses it once; set_default_device changes it
void set_default_device(const Device& device);

Tensor from_bytes(std::span<const std::byte> values, const Shape& shape, ElementType type,
                  const Device& device = {});
Tensor from_doubles(std::span<const double> values, const Shape& shape, ElementType type,
                    const Device& device = {});
template <class T>
Tensor from_span(std::span<const T> values, const Shape& shape, const Device& device = {}) {
  return from_bytes(std::as_bytes(values), shape, dtype_of<T>(), device);
}
template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, const Device& device = {}) {
  return from_span(std::span<const T>(values), shape, device);
}
template <class T>
Tensor from_vector(std::initializer_list<T> values, const Shape& shape, const Device& device = {}) {
  return from_span(std::span<const T>(values.begin(), values.size()), shape, device);
}
// A CPU tensor over a part of a mapped file, whose pages are read on first use. Throws kCorruptFile
// if the file is too short.
Tensor from_file(const std::string& path, uint64_t offset, const Shape& shape, ElementType type);
// A CPU tensor over memory with another owner, without a copy. Constant memory cannot be changed
// in place.
Tensor from_host_memory(std::shared_ptr<std::byte> memory, const Shape& shape, ElementType type);
Tensor from_host_memory(std::shared_ptr<const std::byte> memory, const Shape& shape,
                        ElementType type);
// A CPU tensor over constant memory, made available on another device. It is copied unless the
// device can read host memory in place and the type is plain.
Tensor share(const Tensor& constant, const Device& device);

Tensor empty(const Shape& shape, ElementType type,
             const Device& device = {});  // unspecified values

// A placeholder for planning (estimate_memory): shape, type and device without memory or values.
Tensor without_values(const Shape& shape, ElementType type, const Device& device = {});

// Computes several tensors in one plan.
void eval(std::span<const Tensor> tensors);
void eval(std::initializer_list<Tensor> tensors);

// Bytes of the values as the device stores them. The CPU stores block types as in files; other
// devices store each part of the blocks in its own plane.
uint64_t storage_bytes(const Shape& shape, ElementType type, const Device& device);

// Whether tensors may have this type: f32 f16 bf16 f64 i8 u8 i16 i32 i64 bool, and all block types.
bool is_tensor_type(ElementType type);

// During the lifetime of an object, operations on this thread record no gradients.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  static bool active();

 private:
  bool before_;
};

}  // namespace prism

#pragma GCC visibility pop
