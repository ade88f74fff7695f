// Scatter of elements into a constant tensor by a layout: the op of view_gradient and pad.
#include "ops/shape/view_gradient.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "ops/shape/strided_copy.h"
#include "ops/shape/view_gradient_op.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// The lowest and highest element index of a layout that is not empty.
std::pair<int64_t, int64_t> reach(const Layout& layout) {
  int64_t low = layout.offset, high = layout.offset;
  for (int axis = 0; axis < layout.shape.rank(); ++axis) {
    const int64_t span = (layout.shape[axis] - 1) * layout.stride(axis);
    (span < 0 ? low : high) += span;
  }
  return {low, high};
}

void check_inside(const char* op, const Layout& layout, const Shape& base) {
  if (layout.shape.elements() == 0) return;
  const auto [low, high] = reach(layout);
  if (low < 0 || high >= base.elements()) {
    fail(fmt::format("{}: a view {} that reaches from element {} to {} of {}, which has {}", op,
                     layout.shape.text(), low, high, base.text(), base.elements()));
  }
}

// x with the axes of the base, if the view only permutes them and x already has the base's memory
// order.
std::optional<Tensor> permuted_back(const Tensor& x, const Layout& layout) {
  std::vector<int> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](int axis) { return layout.stride(axis); });
  Layout base = {{}, {}, layout.offset};
  for (const int axis : order) {
    base.strides[static_cast<size_t>(base.shape.rank())] = layout.stride(axis);
    base.shape.append(layout.shape[axis]);
  }
  if (layout.offset != 0 || !base.is_dense()) return std::nullopt;
  const Tensor back = x.permute(order);
  return back.layout().is_dense() ? std::optional(back) : std::nullopt;
}

}  // namespace

std::vector<Spec> ViewGradientOp::infer(std::span<const Tensor> inputs) const {
  const Tensor& x = inputs[0];
  if (!(x.shape() == layout_.shape)) {
    fail(fmt::format("{}: elements {} for places {}; both must have one shape", name_,
                     x.shape().text(), layout_.shape.text()));
  }
  if (x.type().is_block())
    fail(fmt::format("{}: elements of type {}; dequantise() them first", name_, x.type().name()));
  check_inside(name_, layout_, base_);
  return {{base_, x.type()}};
}

std::vector<Tensor> ViewGradientOp::gradient(const GradientCall& call) const {
  return {view(call.output_gradients[0], layout_)};
}

void ViewGradientOp::run_cpu(const CpuCall& call) const {
  const HostView &x = call.inputs[0], &y = call.outputs[0];
  const size_t bytes = y.type.block_bytes();
  if (!covers())
    ops::fill_cpu(y.data, base_.elements(), bytes, ops::stored_bits(value_, y.type.plain()),
                  call.pool);
  ops::strided_copy_cpu(x.data, x.layout, y.data, layout_, bytes, call.pool);
}

void ViewGradientOp::launch(DeviceCall& call) const {
  DeviceView y = call.output();
  if (!covers()) ops::fill_on_device(call, y, ops::stored_bits(value_, y.type.plain()));
  y.layout = layout_;
  ops::strided_copy_on_device(call, call.input(0), y);
}

std::optional<std::string> ViewGradientOp::cannot_run(const DeviceInfo&,
                                                      std::span<const Tensor> inputs) const {
  if (ops::movable_on_device(inputs[0].layout(), layout_)) return std::nullopt;
  return fmt::format("{} moves elements over more axes than kernels have parameters for", name_);
}

Tensor view(const Tensor& base, const Layout& layout) {
  check_inside("view", layout, base.shape());
  const Tensor whole = base.contiguous();
  Layout within = layout;
  within.offset += whole.layout().offset;
  return Tensor(whole.node(), whole.output(), within);
}

Tensor view_gradient(const Tensor& x, const Shape& base_shape, const Layout& layout) {
  if (!x) fail("view_gradient: an empty Tensor");
  if (!(x.shape() == layout.shape)) {
    fail(fmt::format("view_gradient: elements {} for places {}; both must have one shape",
                     x.shape().text(), layout.shape.text()));
  }
  // Sum over the broadcast axes first: then no two elements share an address.
  Axes repeated;
  Layout once{{}, {}, layout.offset};
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (layout.stride(axis) == 0 && layout.shape[axis] != 1) {
      repeated.push_back(axis);
      continue;
    }
    once.strides[static_cast<size_t>(once.shape.rank())] = layout.stride(axis);
    once.shape.append(layout.shape[axis]);
  }
  if (!repeated.empty()) return view_gradient(cast(sum(x, repeated), x.type()), base_shape, once);
  if (layout.offset == 0 && layout.is_dense() && x.elements() == base_shape.elements())
    return x.reshape(base_shape);
  if (x.elements() == base_shape.elements())
    if (const auto back = permuted_back(x, layout)) return back->reshape(base_shape);
  return use_op(std::make_shared<ViewGradientOp>("view_gradient", base_shape, layout), {x});
}

}  // namespace prism
