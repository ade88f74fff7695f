// take_along and put_along, its gradient: one index per element along an axis.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "ops/cpu_types.h"
#include "ops/index/index_reading.h"
#include "ops/shape/strided_copy.h"
#include "prism/error.h"
#include "prism/ops/index.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

// x as [outer, length, inner] and indices as [outer, taken, inner].
struct Axes {
  int64_t outer = 1, length = 1, taken = 1, inner = 1;
};

Axes axes_of(const Shape& x, const Shape& indices, int axis) {
  Axes axes;
  for (int i = 0; i < axis; ++i) axes.outer *= x[i];
  for (int i = axis + 1; i < x.rank(); ++i) axes.inner *= x[i];
  axes.length = x[axis];
  axes.taken = indices[axis];
  return axes;
}

void check_shapes(const char* op, const Shape& x, const Tensor& indices, int axis) {
  ops::check_index_type(op, indices);
  bool fits = indices.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || x[i] == indices.shape()[i];
  if (fits) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: indices {} along axis {} of {}; all other axes must be equal", op,
                          indices.shape().text(), axis, x.text()));
}

ir::Kernel take_kernel(uint32_t unit, bool wide) {
  return kernel("take_along", 256, [&] {
    auto x = in("x", ops::unit_type(unit));
    auto indices = in("indices", u32);
    auto y = out("y", ops::unit_type(unit));
    const Value count = param("count", u32), length = param("length", u32),
                taken = param("taken", u32), inner = param("inner", u32);
    const Value i = global_id();
    if_(i < count, [&] {
      const Value slice = i / inner, column = i - slice * inner, outer = slice / taken;
      const Value index = ops::load_index(indices, i, wide);
      const Value inside = index < length;
      const Value source = (outer * length + select(inside, index, 0u)) * inner + column;
      ops::store_unit(y, i, ops::load_unit_if(inside, x, source, unit), unit);
    });
  });
}

// One lane per element of y searches for the indices equal to its position: no two lanes write to
// one element.
ir::Kernel put_kernel(DType type, bool wide) {
  return kernel("put_along", 256, [&] {
    auto x = in("x", kernel_type(type));
    auto indices = in("indices", u32);
    auto y = out("y", kernel_type(type));
    const Value count = param("count", u32), length = param("length", u32),
                taken = param("taken", u32), inner = param("inner", u32);
    const Value i = global_id();
    if_(i < count, [&] {
      const Value slice = i / inner, column = i - slice * inner, outer = slice / length;
      const Value own = slice - outer * length;
      const DType reg = register_type(type);
      Var sum(reg, is_float(reg) ? constant(reg, 0.0) : constant(reg, 0), "sum");
      for_(taken, [&](Value k) {
        const Value place = (outer * taken + k) * inner + column;
        if_(ops::load_index(indices, place, wide) == own,
            [&] { sum += load_element(x, place, type); });
      });
      y[i] = to_stored(sum, type);
    });
  });
}

std::vector<ParamValue> params_of(const Axes& axes, int64_t count) {
  return {static_cast<uint32_t>(count), static_cast<uint32_t>(axes.length),
          static_cast<uint32_t>(axes.taken), static_cast<uint32_t>(axes.inner)};
}

class TakeAlongOp : public Op {
 public:
  explicit TakeAlongOp(int axis) : axis_(axis) {}
  std::string_view name() const override { return "take_along"; }
  std::string attributes() const override { return fmt::format("axis {}", axis_); }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    check_shapes("take_along", inputs[0].shape(), inputs[1], axis_);
    if (inputs[0].type().is_block()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("take_along: elements of type {}; dequantise() them first",
                              inputs[0].type().name()));
    }
    return {{inputs[1].shape(), inputs[0].type()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    return {
        put_along(call.output_gradients[0], call.inputs[1], axis_, call.inputs[0].shape()[axis_]),
        Tensor()};
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &x = call.inputs[0], &y = call.outputs[0];
    const Axes axes = axes_of(x.layout.shape, y.layout.shape, axis_);
    const ops::HostIndices indices("take_along", call.inputs[1], axes.length);
    const auto take = [&]<class T>(T) {
      const T* from = x.first<T>();
      T* to = y.first<T>();
      call.pool.parallel_for(
          static_cast<uint64_t>(axes.outer * axes.taken), 64, [&](uint64_t first, uint64_t last) {
            for (auto row = static_cast<int64_t>(first); row < static_cast<int64_t>(last); ++row) {
              const int64_t outer = row / axes.taken;
              for (int64_t c = 0; c < axes.inner; ++c) {
                const int64_t i = row * axes.inner + c;
                to[i] = from[(outer * axes.length + indices[i]) * axes.inner + c];
              }
            }
          });
    };
    switch (x.type.block_bytes()) {
      case 1:
        return take(uint8_t{});
      case 2:
        return take(uint16_t{});
      case 4:
        return take(uint32_t{});
      default:
        return take(uint64_t{});
    }
  }

  void launch(DeviceCall& call) const override {
    const DeviceView &x = call.input(0), &indices = call.input(1);
    const Axes axes = axes_of(x.layout.shape, indices.layout.shape, axis_);
    const uint32_t unit = x.type.block_bytes();
    const bool wide = ops::is_wide(indices.type);
    call.launch(
        fmt::format("take_along {} {}", unit, wide ? 64 : 32),
        [&] { return take_kernel(unit, wide); }, {groups_for(indices.elements(), 256), 1, 1},
        {x, indices, call.output()}, params_of(axes, indices.elements()));
  }

 private:
  int axis_;
};

// Adds x[c] to y[c with indices[c] along axis]: the gradient of take_along.
class PutAlongOp : public Op {
 public:
  PutAlongOp(int axis, int64_t length) : axis_(axis), length_(length) {}
  std::string_view name() const override { return "put_along"; }
  std::string attributes() const override { return fmt::format("axis {}", axis_); }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    check_shapes("put_along", inputs[0].shape(), inputs[1], -1);
    Shape shape = inputs[0].shape();
    shape[axis_] = length_;
    return {{shape, inputs[0].type()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    return {take_along(call.output_gradients[0], call.inputs[1], axis_), Tensor()};
  }

  void run_cpu(const CpuCall& call) const override {
    with_sum(call.outputs[0].type.plain(), [&](auto sample) { put<decltype(sample)>(call); });
  }

  void launch(DeviceCall& call) const override {
    const DeviceView &indices = call.input(1), &y = call.output();
    const Axes axes = axes_of(y.layout.shape, indices.layout.shape, axis_);
    const DType type = y.type.plain();
    const bool wide = ops::is_wide(indices.type);
    call.launch(
        fmt::format("put_along {} {}", dtype_name(type), wide ? 64 : 32),
        [&] { return put_kernel(type, wide); }, {groups_for(y.elements(), 256), 1, 1},
        {call.input(0), indices, y}, params_of(axes, y.elements()));
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override {
    const std::string reason = lacks_type(device.capabilities, inputs[0].type().plain());
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

 private:
  template <class T>
  void put(const CpuCall& call) const {
    constexpr DType wide = dtype_of<T>();
    const HostView &x = call.inputs[0], &y = call.outputs[0];
    const Axes axes = axes_of(y.layout.shape, x.layout.shape, axis_);
    const ops::HostIndices indices("put_along", call.inputs[1], axes.length);
    const DType type = y.type.plain();
    const auto bytes = static_cast<int64_t>(y.type.block_bytes());
    const int64_t slice = axes.length * axes.inner;
    call.pool.parallel_for(
        static_cast<uint64_t>(axes.outer), 1, [&](uint64_t first, uint64_t last) {
          std::vector<T> sums(static_cast<size_t>(slice)), row(static_cast<size_t>(axes.inner));
          for (auto outer = static_cast<int64_t>(first); outer < static_cast<int64_t>(last);
               ++outer) {
            std::ranges::fill(sums, T{0});
            for (int64_t k = 0; k < axes.taken; ++k) {
              const int64_t place = (outer * axes.taken + k) * axes.inner;
              cpu::load(type, x.data + (x.layout.offset + place) * bytes, 1, wide, row.data(),
                        row.size());
              for (int64_t c = 0; c < axes.inner; ++c)
                sums[static_cast<size_t>(indices[place + c] * axes.inner + c)] +=
                    row[static_cast<size_t>(c)];
            }
            cpu::store(wide, sums.data(), type, y.data + outer * slice * bytes, sums.size());
          }
        });
  }

  int axis_;
  int64_t length_;
};

}  // namespace

Tensor put_along(const Tensor& x, const Tensor& indices, int axis, int64_t length) {
  return use_op(std::make_shared<PutAlongOp>(checked_axis("put_along", axis, x.rank()), length),
                {x, indices});
}

Tensor take_along(const Tensor& x, const Tensor& indices, int axis) {
  const int checked = checked_axis("take_along", axis, x.rank());
  return use_op(std::make_shared<TakeAlongOp>(checked), {x, indices});
}

}  // namespace prism
