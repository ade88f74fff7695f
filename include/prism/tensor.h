// Tensor: a value with shape, element type and device, computed when it is needed.
//
//   Tensor a = from_vector({1.0f, 2.0f, 3.0f}, {3}), b = full({3}, 2.0);
//   Tensor c = a * b + 1.0;        // a graph; nothing ran
//   std::vector<float> v = c.to_vector<float>();   // planned, run, read
#pragma once

#include <cstdint>
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

// Every axis of a slice: from start to stop by step, as Python counts; a stop left out means the
// end.
struct Slice {
  int64_t start = 0;
  std::optional<int64_t> stop = std::nullopt;
  int64_t step = 1;
};

class Tensor {
 public:
  Tensor() = default;  // no tensor
  Tensor(std::shared_ptr<Node> node, uint32_t output);
  Tensor(std::shared_ptr<Node> node, uint32_t output, Layout layout)
      : node_(std::move(node)), output_(output), layout_(layout) {}

  explicit operator bool() const { return node_ != nullptr; }
  const Shape& shape() const { return layout_.shape; }
  int64_t size(int axis) const;  // checked
  int rank() const { return layout_.shape.rank(); }
  int64_t elements() const { return layout_.shape.elements(); }
  ElementType type() const;
  const Device& device() const;
  bool is_evaluated() const;

  // --- views: the same elements, seen differently; they move nothing. Reshaping a view whose
  // elements do not lie evenly copies them.
  Tensor reshape(std::span<const int64_t> lengths) const;  // one may be -1: what is left
  Tensor reshape(std::initializer_list<int64_t> lengths) const;
  Tensor reshape(const Shape& shape) const;
  Tensor transpose(int axis_a = -2, int axis_b = -1) const;
  Tensor permute(std::span<const int> axes) const;
  Tensor permute(std::initializer_list<int> axes) const;
  Tensor slice(int axis, int64_t start, int64_t stop, int64_t step = 1) const;
  Tensor slice(std::span<const Slice> slices) const;  // of the first axes
  Tensor select(int axis, int64_t index) const;       // one index; the axis goes
  Tensor expand(const Shape& shape) const;            // broadcast to
  Tensor squeeze(int axis) const;
  Tensor unsqueeze(int axis) const;
  Tensor flatten() const { return reshape(std::initializer_list<int64_t>{-1}); }

  // --- data
  const Tensor& eval() const;             // computes it now; returns itself
  Tensor to(const Device& device) const;  // the same values there; itself when there already
  Tensor contiguous() const;              // the same values, lying row by row
  // Computes, waits and reads. T must be the element type, as stored (uint16_t for f16 and bf16,
  // uint8_t for bool).
  template <class T>
  std::vector<T> to_vector() const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(static_cast<size_t>(elements()));
    read(std::as_writable_bytes(std::span(values)), sizeof(T));
    return values;
  }
  std::vector<double> to_doubles() const;  // any plain type, converted
  double item() const;                     // of a tensor with one element
  std::string text() const;                // as a person reads it: values (the middle of long axes
                                           // left out), shape, type, device

  // --- gradients (see prism/grad.h)
  Tensor detach() const;  // the same values, with nothing before them
  bool requires_grad() const;
  Tensor& set_requires_grad(bool wanted = true);  // of a leaf

  const std::shared_ptr<Node>& node() const { return node_; }
  uint32_t output() const { return output_; }
  const Layout& layout() const { return layout_; }

 private:
  Tensor with(const Layout& layout) const { return {node_, output_, layout}; }
  void read(std::span<std::byte> to, size_t element_bytes) const;

  std::shared_ptr<Node> node_;
  uint32_t output_ = 0;
  Layout layout_;
};

// --- making tensors. device: empty means default_device().
Device default_device();  // what init_backend() chose, once; set_default_device changes it
void set_default_device(const Device& device);

Tensor from_bytes(std::span<const std::byte> values, const Shape& shape, ElementType type,
                  const Device& device = {});
Tensor from_doubles(std::span<const double> values, const Shape& shape, ElementType type,
                    const Device& device = {});
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::i8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::u8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::i16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else
    static_assert(sizeof(T) == 0, "no tensor has elements of this type");
}
template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, const Device& device = {}) {
  return from_bytes(std::as_bytes(std::span(values)), shape, dtype_of<T>(), device);
}
// A tensor of the CPU over a part of a file, mapped: nothing is read before it is used. Throws
// kCorruptFile when the file is shorter.
Tensor from_file(const std::string& path, uint64_t offset, const Shape& shape, ElementType type);
// Memory of another owner: a tensor of the CPU without a copy. One over constant memory cannot be
// changed in place.
Tensor from_host_memory(std::shared_ptr<std::byte> memory, const Shape& shape, ElementType type);
Tensor from_host_memory(std::shared_ptr<const std::byte> memory, const Shape& shape,
                        ElementType type);
// A tensor over constant memory of the CPU, on the device: over the same memory where the device
// reads the host's in place and stores the type as files do (no block types), else a copy.
Tensor share(const Tensor& constant, const Device& device);

Tensor empty(const Shape& shape, ElementType type,
             const Device& device = {});  // unspecified values

// To plan with (see estimate_memory): shape, type and device, no memory and no values.
Tensor without_values(const Shape& shape, ElementType type, const Device& device = {});

// Computes several tensors in one plan.
void eval(std::span<const Tensor> tensors);
void eval(std::initializer_list<Tensor> tensors);

// Bytes that the values take as the device stores them (files and the CPU in blocks, other devices
// in planes).
uint64_t storage_bytes(const Shape& shape, ElementType type, const Device& device);

// The types that tensors may have: f32 f16 bf16 f64 i8 u8 i16 i32 i64 bool, and all block types.
bool is_tensor_type(ElementType type);

// While one lives, new nodes do not ask for gradients.
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
