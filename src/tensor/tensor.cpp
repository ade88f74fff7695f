// Tensors as values: their graph nodes, views, and access from the host.
#include "prism/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "base/types/gpu_block_layout.h"
#include "prism/device.h"
#include "prism/error.h"
#include "runtime/fallback.h"
#include "tensor/chain/chain_op.h"
#include "tensor/op.h"
#include "tensor/plan/device_fallback.h"
#include "tensor/plan/planner.h"
#include "tensor/relayout.h"
#include "tensor/storage.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

const Node& present(const std::shared_ptr<Node>& node, const char* doing) {
  if (!node) fail(fmt::format("{}: an empty Tensor", doing));
  return *node;
}

struct DefaultDevice {
  std::mutex mutex;
  Device device;
};
DefaultDevice& default_holder() {
  static auto& holder = *new DefaultDevice;
  return holder;
}

void check_type(const char* doing, const Shape& shape, ElementType type) {
  if (!is_tensor_type(type))
    fail(fmt::format("{}: no tensor has elements of type {}", doing, type.name()));
  if (type.is_block() && (shape.rank() == 0 || shape[-1] % type.block_elements() != 0)) {
    fail(fmt::format("{}: shape {} of type {}: the last axis must be a multiple of {}", doing,
                     shape.text(), type.name(), type.block_elements()));
  }
}

uint64_t file_bytes(const Shape& shape, ElementType type) {
  return static_cast<uint64_t>(shape.elements()) / type.block_elements() * type.block_bytes();
}

Tensor leaf(const Shape& shape, ElementType type, std::shared_ptr<Storage> storage) {
  auto node = std::make_shared<Node>();
  node->outputs = {{shape, type}};
  node->device = storage->device;
  node->storage = {std::move(storage)};
  return Tensor(std::move(node), 0);
}

}  // namespace

Device default_device() {
  DefaultDevice& holder = default_holder();
  const std::scoped_lock lock(holder.mutex);
  if (!holder.device) holder.device = init_backend(BackendPreference::Auto);
  if (holder.device.is_given_up()) holder.device = holder.device.current();
  return holder.device;
}

void set_default_device(const Device& device) {
  DefaultDevice& holder = default_holder();
  const std::scoped_lock lock(holder.mutex);
  holder.device = device;
}

bool is_tensor_type(ElementType type) {
  if (type.is_block()) return true;
  return type.plain() != DType::u16 && type.plain() != DType::u32 && type.plain() != DType::u64;
}

uint64_t storage_bytes(const Shape& shape, ElementType type, const Device& device) {
  if (!type.is_block() || device.info().is_cpu) return file_bytes(shape, type);
  if (shape.elements() == 0) return 0;
  const auto columns = static_cast<uint64_t>(shape[-1]);
  return gpu_block_layout(type.block(), static_cast<uint64_t>(shape.elements()) / columns, columns)
      .bytes();
}

Tensor::Tensor(std::shared_ptr<Node> node, uint32_t output)
    : node_(std::move(node)),
      output_(output),
      layout_(Layout::dense(node_->outputs[output].shape)) {}

ElementType Tensor::dtype() const { return present(node_, "dtype").outputs[output_].type; }
const Device& Tensor::device() const {
  present(node_, "device");
  settle(*node_);
  return node_->device;
}
bool Tensor::is_evaluated() const { return node_ && node_->is_evaluated(); }
int64_t Tensor::size(int axis) const { return shape()[checked_axis("size", axis, rank())]; }

// --- views

Tensor Tensor::reshape(std::initializer_list<int64_t> lengths) const {
  return reshape(std::span<const int64_t>(lengths.begin(), lengths.size()));
}

Tensor Tensor::reshape(std::span<const int64_t> lengths) const {
  present(node_, "reshape");
  std::vector<int64_t> whole(lengths.begin(), lengths.end());
  const auto open = std::ranges::find(whole, -1);
  if (open == whole.end()) return reshape(Shape(whole));
  *open = 1;
  const int64_t others = Shape(whole).elements();
  if (others == 0 || elements() % others != 0) {
    fail(fmt::format("reshape: {} elements of shape {} do not divide into rows of {}", elements(),
                     shape().text(), others));
  }
  *open = elements() / others;
  return reshape(Shape(whole));
}

Tensor Tensor::reshape(const Shape& to) const {
  present(node_, "reshape");
  if (to.elements() != elements()) {
    fail(fmt::format("reshape: {} has {} elements, {} has {}", shape().text(), elements(),
                     to.text(), to.elements()));
  }
  if (type().is_block()) check_type("reshape", to, type());
  if (const auto layout = layout_.reshaped(to)) return with(*layout);
  return contiguous().reshape(to);
}

Tensor Tensor::permute(std::initializer_list<int> axes) const {
  return permute(std::span<const int>(axes.begin(), axes.size()));
}

Tensor Tensor::permute(std::span<const int> axes) const {
  Layout layout{{}, {}, layout_.offset};
  std::array<bool, kMaxRank> seen = {};
  if (static_cast<int>(axes.size()) != rank())
    fail(fmt::format("permute: {} axes given for a tensor of {}", axes.size(), rank()));
  for (const int given : axes) {
    const int axis = checked_axis("permute", given, rank());
    if (seen[static_cast<size_t>(axis)]) fail(fmt::format("permute: axis {} given twice", given));
    seen[static_cast<size_t>(axis)] = true;
    layout.strides[static_cast<size_t>(layout.shape.rank())] = layout_.stride(axis);
    layout.shape.append(shape()[axis]);
  }
  return with(layout);
}

Tensor Tensor::transpose(int axis_a, int axis_b) const {
  const int a = checked_axis("transpose", axis_a, rank());
  const int b = checked_axis("transpose", axis_b, rank());
  Layout layout = layout_;
  std::swap(layout.shape[a], layout.shape[b]);
  std::swap(layout.strides[static_cast<size_t>(a)], layout.strides[static_cast<size_t>(b)]);
  return with(layout);
}

Tensor Tensor::slice(int axis, int64_t start, int64_t stop, int64_t step) const {
  axis = checked_axis("slice", axis, rank());
  if (step == 0) fail("slice: a step of 0");
  const int64_t length = shape()[axis];
  // As in Python: negative positions count from the end; those outside are clamped to the edge.
  const auto edge = [&](int64_t place) {
    if (place < 0) place += length;
    return step > 0 ? std::clamp<int64_t>(place, 0, length)
                    : std::clamp<int64_t>(place, -1, length - 1);
  };
  const int64_t first = edge(start);
  // With a negative step, any stop below -length means before the first element.
  const int64_t last = edge(stop);
  const int64_t distance = step > 0 ? last - first : first - last;
  const int64_t magnitude = step > 0 ? step : -step;
  Layout layout = layout_;
  layout.shape[axis] = distance <= 0 ? 0 : (distance + magnitude - 1) / magnitude;
  layout.offset += layout.shape[axis] == 0 ? 0 : first * layout_.stride(axis);
  layout.strides[static_cast<size_t>(axis)] = layout_.stride(axis) * step;
  if (type().is_block() && axis == rank() - 1 && !(layout.shape == shape()))
    fail(fmt::format("slice: part of a row of type {}; slice whole rows", type().name()));
  return with(layout);
}

Tensor Tensor::slice(std::span<const Slice> slices) const {
  Tensor result = *this;
  for (size_t axis = 0; axis < slices.size(); ++axis) {
    const Slice& each = slices[axis];
    const int64_t end =
        each.step > 0 ? size(static_cast<int>(axis)) : -size(static_cast<int>(axis)) - 1;
    result = result.slice(static_cast<int>(axis), each.start, each.stop.value_or(end), each.step);
  }
  return result;
}

Tensor Tensor::select(int axis, int64_t index) const {
  axis = checked_axis("select", axis, rank());
  const int64_t length = shape()[axis];
  if (index < -length || index >= length)
    fail(fmt::format("select: index {} of axis {} with length {}", index, axis, length));
  if (index < 0) index += length;
  return slice(axis, index, index + 1).squeeze(axis);
}

Tensor Tensor::expand(const Shape& to) const {
  present(node_, "expand");
  if (!(broadcast("expand", shape(), to) == to))
    fail(fmt::format("expand: {} cannot become {}", shape().text(), to.text()));
  return with(layout_.broadcast_to(to));
}

Tensor Tensor::squeeze(int axis) const {
  axis = checked_axis("squeeze", axis, rank());
  if (shape()[axis] != 1)
    fail(fmt::format("squeeze: axis {} of {} is not 1", axis, shape().text()));
  Layout layout = layout_;
  layout.shape.erase(axis);
  std::copy(layout_.strides.begin() + axis + 1, layout_.strides.end(),
            layout.strides.begin() + axis);
  return with(layout);
}

Tensor Tensor::unsqueeze(int axis) const {
  axis = checked_axis("unsqueeze", axis, rank() + 1);
  Layout layout = layout_;
  layout.shape.insert(axis, 1);
  std::copy_backward(layout_.strides.begin() + axis, layout_.strides.end() - 1,
                     layout.strides.end());
  layout.strides[static_cast<size_t>(axis)] = 1;
  return with(layout);
}

// --- data

Tensor Tensor::contiguous() const {
  present(node_, "contiguous");
  if (layout_ == Layout::dense(node_->outputs[output_].shape)) return *this;
  if (layout_.is_dense() && layout_.offset == 0) return *this;
  if (type().is_block()) {
    if (layout_.is_dense()) return *this;  // whole rows
    fail(fmt::format("contiguous: a view of type {} that does not lie row by row", type().name()));
  }
  return copied(*this);
}

Tensor Tensor::to(const Device& given) const {
  present(node_, "to");
  const Device target = given.current();
  if (device() == target) return *this;
  auto node = std::make_shared<Node>();
  node->op = std::make_shared<ToDeviceOp>();
  node->inputs = {*this};
  node->outputs = {{shape(), type()}};
  node->device = target;
  node->requires_grad = requires_grad() && !NoGrad::active();
  return Tensor(std::move(node), 0);
}

// as: the type in which the caller reads the bytes.
void Tensor::read(std::span<std::byte> to, DType as) const {
  const ElementType type = dtype();
  const bool bits = as == DType::u16 && (type == DType::f16 || type == DType::bf16);
  const bool truth = as == DType::u8 && type == DType::b1;
  if (!(type == as) && !bits && !truth) {
    fail(fmt::format("to_vector: elements of type {} asked of a tensor of type {}; {}",
                     ElementType(as).name(), type.name(),
                     type.is_block() ? "dequantise() it first"
                                     : "ask for its own type, convert it with astype(), or use "
                                       "to_doubles()"));
  }
  const Tensor whole = contiguous();
  whole.eval();
  const uint64_t skip = static_cast<uint64_t>(whole.layout_.offset) * type.block_bytes();
  with_fallback([&] { read_storage(*values_of(whole), skip, to); });
}

double Tensor::item() const {
  if (elements() != 1)
    fail(fmt::format("item: a tensor of shape {} has {} elements, not one", shape().text(),
                     elements()));
  return to_doubles()[0];
}

Tensor Tensor::detach() const {
  eval();
  Tensor result = *this;
  if (!node_->requires_grad) return result;
  auto node = std::make_shared<Node>();
  node->outputs = node_->outputs;
  node->device = device();
  node->storage = node_->storage;
  result.node_ = std::move(node);
  return result;
}

bool Tensor::requires_grad() const { return node_ && node_->requires_grad; }

// Whether the tensor is the whole value of a node without inputs.
bool Tensor::is_whole_leaf() const {
  return node_->inputs.empty() && node_->outputs.size() == 1 &&
         layout_ == Layout::dense(node_->outputs[0].shape);
}

Tensor Tensor::as_leaf() const {
  const Tensor whole = contiguous();
  whole.eval();
  auto node = std::make_shared<Node>();
  node->outputs = {{shape(), dtype()}};
  node->device = whole.device();
  node->storage = {whole.node_->storage[whole.output_]};
  return Tensor(std::move(node), 0);
}

Tensor& Tensor::set_requires_grad(bool wanted) {
  const Node& node = present(node_, "set_requires_grad");
  if (wanted && (dtype().is_block() || !is_float(dtype().plain())))
    fail(fmt::format("set_requires_grad: a tensor of type {}; only floats have gradients",
                     dtype().name()));
  if (!is_whole_leaf()) {
    if (node.requires_grad) {
      fail(
          "set_requires_grad: the tensor was computed from others that require gradients; "
          "detach() it first");
    }
    if (!wanted) return *this;
    *this = as_leaf();
  }
  node_->requires_grad = wanted;
  return *this;
}

// --- creation

Tensor from_bytes(std::span<const std::byte> values, const Shape& shape, ElementType type,
                  const Device& given) {
  check_type("tensor", shape, type);
  if (values.size() != file_bytes(shape, type)) {
    fail(fmt::format("tensor: {} bytes given, shape {} of type {} takes {}", values.size(),
                     shape.text(), type.name(), file_bytes(shape, type)));
  }
  const DeviceView view{0, type, Layout::dense(shape)};
  return with_fallback([&] {
    const Device device = given ? given.current() : default_device();
    auto storage = allocate_storage(device, storage_bytes(shape, type, device));
    if (may_fall_back(device)) {
      auto kept = allocate_storage(Device::cpu(), values.size());
      write_storage(*kept, 0, values);
      kept->given = true;
      transfer(*kept, 0, view, *storage, 0);
      keep_origin(*storage, kept, type, view.layout);
    } else if (type.is_block() && !device.info().is_cpu) {
      Storage host;
      host.host =
          std::shared_ptr<std::byte>(const_cast<std::byte*>(values.data()), [](std::byte*) {});
      transfer(host, 0, view, *storage, 0);
    } else {
      write_storage(*storage, 0, values);
      storage->given = true;
    }
    return leaf(shape, type, std::move(storage));
  });
}

Tensor empty(const Shape& shape, ElementType type, const Device& given) {
  check_type("empty", shape, type);
  return with_fallback([&] {
    const Device device = given ? given.current() : default_device();
    return leaf(shape, type, allocate_storage(device, storage_bytes(shape, type, device)));
  });
}

Tensor without_values(const Shape& shape, ElementType type, const Device& given) {
  check_type("without_values", shape, type);
  const Device device = given ? given.current() : default_device();
  auto storage = std::make_shared<Storage>();
  storage->device = device;
  storage->bytes = storage_bytes(shape, type, device);
  return leaf(shape, type, std::move(storage));
}

Tensor from_host_memory(std::shared_ptr<std::byte> memory, const Shape& shape, ElementType type) {
  check_type("tensor", shape, type);
  return leaf(shape, type,
              borrow_storage(Device::cpu(), std::move(memory), file_bytes(shape, type), false));
}

Tensor from_host_memory(std::shared_ptr<const std::byte> memory, const Shape& shape,
                        ElementType type) {
  check_type("tensor", shape, type);
  return leaf(shape, type,
              borrow_storage(Device::cpu(), std::const_pointer_cast<std::byte>(std::move(memory)),
                             file_bytes(shape, type), true));
}

Tensor share(const Tensor& tensor, const Device& given) {
  present(tensor.node(), "share");
  const Device device = given.current();
  const auto source = tensor.is_evaluated() ? values_of(tensor) : nullptr;
  const Layout& layout = tensor.layout();
  if (source && source->is_host() && source->constant && !device.info().is_cpu &&
      !tensor.type().is_block() && layout.is_dense()) {
    const uint64_t skip = static_cast<uint64_t>(layout.offset) * tensor.type().block_bytes();
    if (auto shared =
            wrap_storage(device, *source, skip, file_bytes(tensor.shape(), tensor.type()))) {
      keep_origin(*shared, source, tensor.type(), layout);
      return leaf(tensor.shape(), tensor.type(), std::move(shared));
    }
  }
  return tensor.to(device).eval();
}

}  // namespace prism
