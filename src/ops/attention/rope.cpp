// Rotary embedding; its gradient is the inverse rotation.
#include "prism/ops/rope.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/rope.h"
#include "ops/attention/rope_angle.h"
#include "ops/float_param.h"
#include "ops/shape/strided_copy.h"
#include "prism/error.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;
using prism::Layout;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// Each lane handles two elements: a rotated pair, or two that are copied.
ir::Kernel rope_kernel(DType type, RopePairing pairing) {
  return kernel("rope", 256, [&] {
    auto x = in("x", type);
    auto positions = in("positions", i32);
    auto frequencies = in("frequencies", f32);
    auto y = out("y", type);
    const Value count = param("count", u32), half_head = param("half_head", u32),
                heads = param("heads", u32), pairs = param("pairs", u32),
                row_stride = param("row_stride", u32), head_stride = param("head_stride", u32),
                offset = param("offset", u32);
    const DType wide = register_type(type);
    const Value sign = ops::float_param("sign", wide),
                magnitude = ops::float_param("magnitude", wide);
    const Value i = global_id();
    if_(i < count, [&] {
      const Value head_index = i / half_head, pair = i - head_index * half_head;
      const Value row = head_index / heads, head = head_index - row * heads;
      const Value from = offset + row * row_stride + head * head_stride;
      const Value to = head_index * half_head * 2u;
      const Value rotated = pair < pairs;
      const bool adjacent = pairing == RopePairing::adjacent;
      const Value first = adjacent ? pair * 2u : select(rotated, pair, pair * 2u);
      const Value second = adjacent ? first + 1u : select(rotated, pair + pairs, first + 1u);
      const Value a = load_element(x, from + first, type), b = load_element(x, from + second, type);
      if_(
          rotated,
          [&] {
            const Value position = cast(wide, positions[row]), frequency = frequencies[pair];
            const Value angle = (wide == f64 ? position * cast(f64, frequency)
                                             : ops::reduced_angle(position, frequency)) *
                                sign;
            const Value c = cos(angle) * magnitude, s = sin(angle) * magnitude;
            y[to + first] = to_stored(a * c - b * s, type);
            y[to + second] = to_stored(a * s + b * c, type);
          },
          [&] {
            y[to + first] = to_stored(a, type);
            y[to + second] = to_stored(b, type);
          });
    });
  });
}

// A layout collapsed to [rows, heads, elements].
struct Rows {
  int64_t rows = 1, row_stride = 0;
};

std::optional<Rows> rows_of(const Layout& layout) {
  const int leading = layout.shape.rank() - 2;
  if (layout.shape[-1] > 1 && layout.stride(-1) != 1) return std::nullopt;
  Rows result;
  for (int axis = leading - 1; axis >= 0; --axis) {
    if (layout.shape[axis] == 1) continue;
    if (result.rows == 1)
      result.row_stride = layout.stride(axis);
    else if (layout.stride(axis) != result.row_stride * result.rows)
      return std::nullopt;
    result.rows *= layout.shape[axis];
  }
  return result;
}

class RopeOp : public Op {
 public:
  RopeOp(const RopeOptions& options, bool backward) : options_(options), backward_(backward) {}
  std::string_view name() const override { return backward_ ? "rope_backward" : "rope"; }
  std::string attributes() const override { return rope_text(options_); }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor &x = inputs[0], &positions = inputs[1], &frequencies = inputs[2];
    if (x.type().is_block() || !is_float(x.type().plain()))
      fail(fmt::format("rope: x is {}; it must be a float type", x.type().name()));
    if (x.rank() < 2)
      fail(fmt::format("rope: x {}; it must be [rows..., heads, head_dims]", x.shape().text()));
    const int64_t head = x.shape()[-1];
    if (head % 2 != 0 || options_.dims % 2 != 0 || options_.dims > head || options_.dims < 0) {
      fail(fmt::format("rope: {} dims of heads of {}; both must be even, dims at most the head",
                       options_.dims, head));
    }
    Shape rows = x.shape();
    rows.erase(rows.rank() - 1);
    rows.erase(rows.rank() - 1);
    if (!(positions.shape() == rows) || !(positions.type() == ElementType(DType::i32))) {
      fail(fmt::format("rope: positions {} {} for x {}; they must be i32 {}",
                       positions.type().name(), positions.shape().text(), x.shape().text(),
                       rows.text()));
    }
    if (!(frequencies.shape() == Shape{options_.dims / 2}) ||
        !(frequencies.type() == ElementType(DType::f32))) {
      fail(fmt::format("rope: frequencies {} {} for {} dims; they must be f32 [{}]",
                       frequencies.type().name(), frequencies.shape().text(), options_.dims,
                       options_.dims / 2));
    }
    return {{x.shape(), x.type()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    auto other = std::make_shared<RopeOp>(options_, !backward_);
    return {use_op(std::move(other), {call.output_gradients[0], call.inputs[1], call.inputs[2]}),
            Tensor(), Tensor()};
  }

  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    if (input == 0) return rows_of(tensor.layout()).has_value();
    return Op::takes_layout(input, tensor, device);
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &x = call.inputs[0], &y = call.outputs[0];
    const auto* positions = call.inputs[1].first<int32_t>();
    const auto* frequencies = call.inputs[2].first<float>();
    const DType type = x.type.plain();
    if (y.layout.shape.elements() == 0) return;
    ops::strided_copy_cpu(x.data, x.layout, y.data, y.layout, y.type.block_bytes(), call.pool);
    if (type == DType::f64)
      return rotate_f64(reinterpret_cast<double*>(y.data), y.layout.shape, positions, frequencies,
                        call.pool);
    cpu::Rope rope;
    rope.heads = static_cast<size_t>(y.layout.shape[-2]);
    rope.head_stride = static_cast<size_t>(y.layout.shape[-1]);
    rope.row_stride = rope.heads * rope.head_stride;
    rope.rows = static_cast<size_t>(y.layout.shape.elements()) / rope.row_stride;
    rope.dims = static_cast<size_t>(options_.dims);
    rope.pairing = options_.pairing;
    rope.magnitude = static_cast<float>(options_.magnitude);
    rope.backward = backward_;
    if (type == DType::f32)
      return cpu::rope(call.pool, rope, positions, frequencies, reinterpret_cast<float*>(y.data));
    const auto count = static_cast<size_t>(y.layout.shape.elements());
    std::vector<float> wide(count);
    cpu::load(type, y.data, 1, DType::f32, wide.data(), count);
    cpu::rope(call.pool, rope, positions, frequencies, wide.data());
    cpu::store(DType::f32, wide.data(), type, y.data, count);
  }

  void launch(DeviceCall& call) const override {
    const DeviceView& x = call.input(0);
    const Shape& shape = x.layout.shape;
    const Rows rows = *rows_of(x.layout);
    const DType type = x.type.plain();
    const int64_t count = shape.elements() / 2;
    const auto word = [](int64_t value) { return ParamValue(static_cast<uint32_t>(value)); };
    DeviceView from = x;
    from.layout.offset = 0;  // passed as a parameter
    std::vector<ParamValue> params = {word(count),           word(shape[-1] / 2),
                                      word(shape[-2]),       word(options_.dims / 2),
                                      word(rows.row_stride), word(x.layout.stride(-2)),
                                      word(x.layout.offset)};
    ops::add_float_param(params, backward_ ? -1 : 1, register_type(type));
    ops::add_float_param(params, options_.magnitude, register_type(type));
    call.launch(
        fmt::format("rope {} {}", dtype_name(type), static_cast<int>(options_.pairing)),
        [&] { return rope_kernel(type, options_.pairing); }, {groups_for(count, 256), 1, 1},
        {from, call.input(1), call.input(2), call.output()}, std::move(params));
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override {
    const std::string reason = lacks_type(device.capabilities, inputs[0].type().plain());
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

 private:
  void rotate_f64(double* y, const Shape& shape, const int32_t* positions, const float* frequencies,
                  ThreadPool& pool) const {
    const int64_t head = shape[-1], heads = shape[-2], pairs = options_.dims / 2;
    const auto rows = static_cast<uint64_t>(shape.elements() / (head * heads));
    pool.parallel_for(rows, 8, [&](uint64_t first, uint64_t last) {
      for (uint64_t row = first; row < last; ++row) {
        for (int64_t pair = 0; pair < pairs; ++pair) {
          const double angle =
              positions[row] * static_cast<double>(frequencies[pair]) * (backward_ ? -1 : 1);
          const double c = std::cos(angle) * options_.magnitude;
          const double s = std::sin(angle) * options_.magnitude;
          const bool adjacent = options_.pairing == RopePairing::adjacent;
          for (int64_t h = 0; h < heads; ++h) {
            double* const at = y + (static_cast<int64_t>(row) * heads + h) * head;
            double& a = at[adjacent ? 2 * pair : pair];
            double& b = at[adjacent ? 2 * pair + 1 : pair + pairs];
            const double before = a;
            a = before * c - b * s;
            b = before * s + b * c;
          }
        }
      }
    });
  }

  RopeOptions options_;
  bool backward_;
};

}  // namespace

std::string rope_text(const RopeOptions& options, bool rotates) {
  if (!rotates) return "no rotation";
  return fmt::format("{} dims, {}", options.dims,
                     options.pairing == RopePairing::adjacent ? "adjacent" : "halves");
}

Tensor rope(const Tensor& x, const Tensor& positions, const Tensor& frequencies,
            const RopeOptions& options) {
  RopeOptions whole = options;
  if (!x) fail("rope: x is an empty Tensor");
  if (whole.dims == 0 && x.rank() > 0) whole.dims = x.shape()[-1];
  return use_op(std::make_shared<RopeOp>(whole, false), {x, positions, frequencies});
}

}  // namespace prism
