// concat as an op of strided copies, and the functions built from it and from views.
#include "prism/ops/join.h"

#include <fmt/format.h>

#include "ops/shape/strided_copy.h"
#include "ops/shape/view_gradient_op.h"
#include "prism/error.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

class ConcatOp : public Op {
 public:
  explicit ConcatOp(int axis) : axis_(axis) {}
  std::string_view name() const override { return "concat"; }
  std::string attributes() const override { return fmt::format("axis {}", axis_); }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor& first = inputs[0];
    Shape shape = first.shape();
    for (const Tensor& each : inputs.subspan(1)) {
      bool fits = each.rank() == first.rank();
      for (int axis = 0; fits && axis < first.rank(); ++axis)
        fits = axis == axis_ || each.shape()[axis] == shape[axis];
      if (!fits) {
        fail(fmt::format("concat: {} and {} along axis {}; all other axes must be equal",
                         first.shape().text(), each.shape().text(), axis_));
      }
      if (!(each.type() == first.type())) {
        fail(fmt::format("concat: elements of type {} and {}; cast() one of them",
                         first.type().name(), each.type().name()));
      }
      shape[axis_] += each.shape()[axis_];
    }
    if (first.type().is_block()) {
      fail(
          fmt::format("concat: elements of type {}; dequantise() them first", first.type().name()));
    }
    return {{shape, first.type()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    std::vector<Tensor> gradients;
    int64_t start = 0;
    for (const Tensor& each : call.inputs) {
      const int64_t stop = start + each.shape()[axis_];
      gradients.push_back(call.output_gradients[0].slice(axis_, start, stop));
      start = stop;
    }
    return gradients;
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView& y = call.outputs[0];
    int64_t start = 0;
    for (const HostView& each : call.inputs)
      ops::strided_copy_cpu(each.data, each.layout, y.data,
                            part(y.layout, each.layout.shape, start), y.type.block_bytes(),
                            call.pool);
  }

  void launch(DeviceCall& call) const override {
    int64_t start = 0;
    for (size_t i = 0; i < call.input_count(); ++i) {
      DeviceView y = call.output();
      y.layout = part(y.layout, call.input(i).layout.shape, start);
      ops::strided_copy_on_device(call, call.input(i), y);
    }
  }

  std::optional<std::string> cannot_run(const DeviceInfo&,
                                        std::span<const Tensor> inputs) const override {
    const Layout whole = Layout::dense(infer(inputs)[0].shape);
    int64_t start = 0;
    for (const Tensor& each : inputs)
      if (!ops::movable_on_device(each.layout(), part(whole, each.shape(), start)))
        return "concat moves elements over more axes than kernels have parameters for";
    return std::nullopt;
  }

  bool takes_layout(size_t, const Tensor&, const DeviceInfo&) const override { return true; }

 private:
  // The layout of an input's part of the output; advances start to its end.
  Layout part(Layout whole, const Shape& shape, int64_t& start) const {
    whole.offset += start * whole.stride(axis_);
    whole.shape[axis_] = shape[axis_];
    start += shape[axis_];
    return whole;
  }

  int axis_;
};

}  // namespace

Tensor concat(std::span<const Tensor> tensors, int axis) {
  if (tensors.empty()) fail("concat: no tensors");
  if (!tensors[0]) fail("concat: an empty Tensor");
  const int checked = checked_axis("concat", axis, tensors[0].rank());
  if (tensors.size() == 1) return tensors[0];
  return use_op(std::make_shared<ConcatOp>(checked), {tensors.begin(), tensors.end()});
}

Tensor concat(std::initializer_list<Tensor> tensors, int axis) {
  return concat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}

Tensor stack(std::span<const Tensor> tensors, int axis) {
  if (tensors.empty()) fail("stack: no tensors");
  const int checked = checked_axis("stack", axis, tensors[0].rank() + 1);
  std::vector<Tensor> longer;
  for (const Tensor& each : tensors) {
    if (!(each.shape() == tensors[0].shape())) {
      fail(fmt::format("stack: {} and {}; all shapes must be equal", tensors[0].shape().text(),
                       each.shape().text()));
    }
    longer.push_back(each.unsqueeze(checked));
  }
  return concat(longer, checked);
}

Tensor stack(std::initializer_list<Tensor> tensors, int axis) {
  return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}

std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> lengths, int axis) {
  const int checked = checked_axis("split", axis, x.rank());
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t length : lengths) {
    if (length < 0) fail(fmt::format("split: a part of {}", length));
    parts.push_back(x.slice(checked, start, start + length));
    start += length;
  }
  if (start != x.size(checked)) {
    fail(fmt::format("split: parts of {} in all along axis {} of {}", start, checked,
                     x.shape().text()));
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, std::initializer_list<int64_t> lengths, int axis) {
  return split(x, std::span<const int64_t>(lengths.begin(), lengths.size()), axis);
}

std::vector<Tensor> split(const Tensor& x, int64_t parts, int axis) {
  const int64_t length = x.size(axis);
  if (parts < 1 || length % parts != 0) {
    fail(fmt::format("split: {} parts of axis {} of {}, which do not come out even", parts, axis,
                     x.shape().text()));
  }
  return split(x, std::vector<int64_t>(static_cast<size_t>(parts), length / parts), axis);
}

Tensor pad(const Tensor& x, std::span<const Edges> edges, double value) {
  const int first = x.rank() - static_cast<int>(edges.size());
  if (first < 0) fail(fmt::format("pad: edges of {} axes of {}", edges.size(), x.shape().text()));
  Shape shape = x.shape();
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].before < 0 || edges[i].after < 0) {
      fail(fmt::format("pad: edges of {} and {}; slice() takes elements away", edges[i].before,
                       edges[i].after));
    }
    shape[first + static_cast<int>(i)] += edges[i].before + edges[i].after;
  }
  Layout layout = Layout::dense(shape);
  for (size_t i = 0; i < edges.size(); ++i)
    layout.offset += edges[i].before * layout.stride(first + static_cast<int>(i));
  layout.shape = x.shape();
  return use_op(std::make_shared<ViewGradientOp>("pad", shape, layout, value), {x});
}

Tensor pad(const Tensor& x, std::initializer_list<Edges> edges, double value) {
  return pad(x, std::span<const Edges>(edges.begin(), edges.size()), value);
}

namespace {

// x with a new axis of length `times` before axis `place`, merged with axis `axis`.
Tensor repeated(const char* op, const Tensor& x, int64_t times, int axis, int place) {
  if (times < 0) fail(fmt::format("{}: {} times", op, times));
  Shape expanded = x.shape(), result = x.shape();
  expanded.insert(place, times);
  result[axis] *= times;
  return x.unsqueeze(place).expand(expanded).reshape(result);
}

}  // namespace

Tensor repeat(const Tensor& x, int64_t times, int axis) {
  const int checked = checked_axis("repeat", axis, x.rank());
  return repeated("repeat", x, times, checked, checked + 1);
}

Tensor repeat(const Tensor& x, int64_t times) { return repeat(x.flatten(), times, 0); }

Tensor tile(const Tensor& x, std::span<const int64_t> times) {
  Tensor result = x;
  while (result.rank() < static_cast<int>(times.size())) result = result.unsqueeze(0);
  const int first = result.rank() - static_cast<int>(times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    const int axis = first + static_cast<int>(i);
    if (times[i] != 1) result = repeated("tile", result, times[i], axis, axis);
  }
  return result;
}

Tensor tile(const Tensor& x, std::initializer_list<int64_t> times) {
  return tile(x, std::span<const int64_t>(times.begin(), times.size()));
}

Tensor tile(const Tensor& x, int64_t times) { return tile(x, std::span(&times, 1)); }

Tensor flip(const Tensor& x, int axis) {
  const int checked = checked_axis("flip", axis, x.rank());
  return x.slice(checked, -1, -x.size(checked) - 1, -1);
}

Tensor roll(const Tensor& x, int64_t places, int axis) {
  const int checked = checked_axis("roll", axis, x.rank());
  const int64_t length = x.size(checked);
  if (length == 0) return x;
  const int64_t start = ((-places) % length + length) % length;  // the first element of the result
  if (start == 0) return x;
  return concat({x.slice(checked, start, length), x.slice(checked, 0, start)}, checked);
}

}  // namespace prism
