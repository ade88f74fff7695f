// Convolutions: shape rules, gradients, and direct kernels for few channels.
#include "prism/ops/conv.h"

#include <fmt/format.h>

#include "ops/conv/conv_op.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;
using Kind = ConvOp::Kind;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

Value zero_of(DType type) { return constant(register_type(type), 0.0); }

struct ConvParams {
  Value count, batch, channels, filters, group_channels, group_filters;
  ops::WindowParams windows;
  static ConvParams declare() {
    const Value count = param("count", u32), batch = param("batch", u32),
                channels = param("channels", u32), filters = param("filters", u32),
                group_channels = param("group_channels", u32),
                group_filters = param("group_filters", u32);
    return {count,
            batch,
            channels,
            filters,
            group_channels,
            group_filters,
            ops::WindowParams::declare()};
  }
  Value plane() const { return windows.height * windows.width; }
  Value outputs() const { return windows.out_y * windows.out_x; }
  Value taps() const { return windows.window_y * windows.window_x; }
};

// y[b][f][o] = sum over channels c of the group and taps t of x[b][c][place] * weight[f][c][t]
ir::Kernel forward_kernel(DType type) {
  return kernel("conv", 256, [&] {
    auto x = in("x", type), weight = in("weight", type);
    auto y = out("y", type);
    const ConvParams p = ConvParams::declare();
    const Value i = global_id();
    if_(i < p.count, [&] {
      const Value image = i / p.outputs(), output = i - image * p.outputs();
      const Value b = image / p.filters, f = image - b * p.filters;
      const Value row = output / p.windows.out_x, column = output - row * p.windows.out_x;
      const Value first_channel = b * p.channels + f / p.group_filters * p.group_channels;
      Var sum(zero_of(type), "sum");
      for_(p.group_channels, [&](Value c) {
        const Value from = (first_channel + c) * p.plane();
        const Value by = (f * p.group_channels + c) * p.taps();
        p.windows.for_taps(row, column, [&](Value place, Value tap) {
          sum = fma(load_element(x, from + place, type), load_element(weight, by + tap, type), sum);
        });
      });
      y[i] = to_stored(sum, type);
    });
  });
}

ir::Kernel input_gradient_kernel(DType type) {
  return kernel("conv_input_gradient", 256, [&] {
    auto g = in("g", type), weight = in("weight", type);
    auto y = out("y", type);
    const ConvParams p = ConvParams::declare();
    const Value i = global_id();
    if_(i < p.count, [&] {
      const Value image = i / p.plane(), place = i - image * p.plane();
      const Value b = image / p.channels, c = image - b * p.channels;
      const Value row = place / p.windows.width, column = place - row * p.windows.width;
      const Value group = c / p.group_channels, own = c - group * p.group_channels;
      Var sum(zero_of(type), "sum");
      for_(p.group_filters, [&](Value k) {
        const Value f = group * p.group_filters + k;
        const Value from = (b * p.filters + f) * p.outputs();
        const Value by = (f * p.group_channels + own) * p.taps();
        p.windows.for_windows(row, column, [&](Value window, Value tap) {
          sum =
              fma(load_element(g, from + window, type), load_element(weight, by + tap, type), sum);
        });
      });
      y[i] = to_stored(sum, type);
    });
  });
}

// One group per weight, because there are few weights and each sums many terms.
ir::Kernel weight_gradient_kernel(DType type) {
  return kernel("conv_weight_gradient", 256, [&] {
    auto x = in("x", type), g = in("g", type);
    auto y = out("y", type);
    const ConvParams p = ConvParams::declare();
    const Value i = group_id(), lane = local_id();
    const Value filter = i / p.taps(), tap = i - filter * p.taps();
    const Value f = filter / p.group_channels, own = filter - f * p.group_channels;
    const Value v = tap / p.windows.window_x, u = tap - v * p.windows.window_x;
    const Value c = f / p.group_filters * p.group_channels + own;
    Var sum(zero_of(type), "sum");
    for_(lane, p.batch * p.outputs(), 256u, [&](Value term) {
      const Value b = term / p.outputs(), output = term - b * p.outputs();
      const Value y_row = output / p.windows.out_x, y_column = output - y_row * p.windows.out_x;
      const ops::WindowParams& w = p.windows;
      const Value row = y_row * w.stride_y + v * w.dilation_y - w.padding_y;
      const Value column = y_column * w.stride_x + u * w.dilation_x - w.padding_x;
      if_(row < w.height && column < w.width, [&] {
        const Value place = (b * p.channels + c) * p.plane() + row * w.width + column;
        sum = fma(load_element(x, place, type),
                  load_element(g, (b * p.filters + f) * p.outputs() + output, type), sum);
      });
    });
    const Value total = group_sum(sum);
    if_(lane == 0u && i < p.count, [&] { y[i] = to_stored(total, type); });
  });
}

Tensor use(Kind kind, const ConvOp::Sizes& sizes, const Tensor& a, const Tensor& b) {
  return use_op(std::make_shared<ConvOp>(kind, sizes), {a, b});
}

}  // namespace

std::string_view ConvOp::name() const {
  switch (kind_) {
    case Kind::forward:
      return "conv";
    case Kind::input_gradient:
      return "conv_input_gradient";
    case Kind::weight_gradient:
      return "conv_weight_gradient";
  }
  return "conv";
}

std::vector<Spec> ConvOp::infer(std::span<const Tensor> inputs) const {
  switch (kind_) {
    case Kind::forward:
      return {{sizes_.y(), inputs[0].type()}};
    case Kind::input_gradient:
      return {{sizes_.x(), inputs[0].type()}};
    case Kind::weight_gradient:
      return {{sizes_.weight(), inputs[0].type()}};
  }
  return {};
}

std::vector<Tensor> ConvOp::gradient(const GradientCall& call) const {
  const Tensor &a = call.inputs[0], &b = call.inputs[1], &g = call.output_gradients[0];
  const auto wanted = [&](size_t i, Kind kind, const Tensor& first, const Tensor& second) {
    return call.wanted[i] ? use(kind, sizes_, first, second) : Tensor();
  };
  switch (kind_) {
    case Kind::forward:  // a is x, b is weight
      return {wanted(0, Kind::input_gradient, g, b), wanted(1, Kind::weight_gradient, a, g)};
    case Kind::input_gradient:  // a is the gradient of y, b is weight
      return {wanted(0, Kind::forward, g, b), wanted(1, Kind::weight_gradient, g, a)};
    case Kind::weight_gradient:  // a is x, b is the gradient of y
      return {wanted(0, Kind::input_gradient, b, g), wanted(1, Kind::forward, a, g)};
  }
  return {};
}

std::optional<std::string> ConvOp::cannot_run(const DeviceInfo& device,
                                              std::span<const Tensor> inputs) const {
  const std::string reason = lacks_type(device.capabilities, inputs[0].type().plain());
  return reason.empty() ? std::nullopt : std::optional(reason);
}

void ConvOp::launch(DeviceCall& call) const {
  const DType type = call.output().type.plain();
  const int64_t count = call.output().elements();
  if (is_product(call.info(), type)) return launch_product(call);
  std::vector<ParamValue> params;
  for (const int64_t each : {count, sizes_.batch, sizes_.channels, sizes_.filters,
                             sizes_.group_channels(), sizes_.group_filters()})
    params.emplace_back(static_cast<uint32_t>(each));
  for (const ParamValue& each : sizes_.windows.params()) params.push_back(each);
  const bool by_group = kind_ == Kind::weight_gradient;
  const uint32_t groups = by_group ? static_cast<uint32_t>(count) : groups_for(count, 256);
  call.launch(
      fmt::format("{} {}", name(), dtype_name(type)),
      [&] {
        if (kind_ == Kind::forward) return forward_kernel(type);
        return by_group ? weight_gradient_kernel(type) : input_gradient_kernel(type);
      },
      {groups, 1, 1}, {call.input(0), call.input(1), call.output()}, std::move(params));
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options,
              const Tensor& bias) {
  if (!x || !weight) fail("conv2d: x or weight is an empty Tensor");
  if (x.rank() != 4 || weight.rank() != 4) {
    fail(fmt::format("conv2d: x {} and weight {}; both must have four axes", x.shape().text(),
                     weight.shape().text()));
  }
  if (x.type().is_block() || !is_float(x.type().plain()) || !(x.type() == weight.type())) {
    fail(fmt::format("conv2d: x is {} and weight is {}; both must have the same float type",
                     x.type().name(), weight.type().name()));
  }
  ConvOp::Sizes sizes;
  sizes.batch = x.shape()[0], sizes.channels = x.shape()[1], sizes.filters = weight.shape()[0];
  sizes.groups = options.groups;
  if (options.groups < 1 || sizes.channels % options.groups != 0 ||
      sizes.filters % options.groups != 0 || weight.shape()[1] * options.groups != sizes.channels) {
    fail(
        fmt::format("conv2d: x {} and weight {} in {} groups; weight's second axis must be the "
                    "channels per group, and the number of filters a multiple of the groups",
                    x.shape().text(), weight.shape().text(), options.groups));
  }
  ops::Windows windows;
  windows.height = x.shape()[2], windows.width = x.shape()[3];
  windows.window_y = weight.shape()[2], windows.window_x = weight.shape()[3];
  windows.stride_y = options.stride_y, windows.stride_x = options.stride_x;
  windows.padding_y = options.padding_y, windows.padding_x = options.padding_x;
  windows.dilation_y = options.dilation_y, windows.dilation_x = options.dilation_x;
  sizes.windows = ops::windows_of("conv2d", windows);
  const Tensor y = use(Kind::forward, sizes, x, weight);
  if (!bias) return y;
  if (!(bias.shape() == Shape{sizes.filters})) {
    fail(fmt::format("conv2d: bias {} for {} filters; it must have one element per filter",
                     bias.shape().text(), sizes.filters));
  }
  return y + bias.reshape({sizes.filters, 1, 1});
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Conv1dOptions& options,
              const Tensor& bias) {
  if (!x || !weight || x.rank() != 3 || weight.rank() != 3) {
    fail(fmt::format("conv1d: x {} and weight {}; both must have three axes", x.shape().text(),
                     weight.shape().text()));
  }
  Conv2dOptions wide;
  wide.stride_x = options.stride, wide.padding_x = options.padding;
  wide.dilation_x = options.dilation, wide.groups = options.groups;
  return conv2d(x.unsqueeze(2), weight.unsqueeze(2), wide, bias).squeeze(2);
}

}  // namespace prism
