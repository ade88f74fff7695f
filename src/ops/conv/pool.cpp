// Pooling: the maximum or mean of each window, and their gradients.
#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "ops/conv/windows.h"
#include "ops/cpu_types.h"
#include "prism/error.h"
#include "prism/ops/conv.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;
using ops::WindowParams;
using ops::Windows;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

enum class Kind {
  largest,         // x -> y: the maximum of each window
  select_largest,  // x, v -> y: v at the place of the maximum of x
  spread_largest,  // x, g -> gradient of v in `select_largest`, and of x in `largest`
  mean,            // x -> y
  spread_mean,     // g -> gradient of x in `mean`
};

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::largest:
      return "max_pool";
    case Kind::select_largest:
      return "max_pool_select";
    case Kind::spread_largest:
      return "max_pool_gradient";
    case Kind::mean:
      return "avg_pool";
    case Kind::spread_mean:
      return "avg_pool_gradient";
  }
  return "pool";
}

// --- kernels: one lane per element of y

Value is_number(Value x) { return x.element() == f32 ? !is_nan(x) : x == x; }

// The place of the first maximum of a window, in x from `first` on.
void find_largest(const WindowParams& w, const In& x, DType type, Value first, Value row,
                  Value column, Var& best, Var& best_place) {
  best = constant(register_type(type), -std::numeric_limits<double>::infinity());
  best_place = constant_bits(u32, 0xffffffffu);
  w.for_taps(row, column, [&](Value place, Value) {
    const Value value = load_element(x, first + place, type);
    const Value none_yet = best_place == 0xffffffffu;
    if_(is_number(best) && (value > best || none_yet || !is_number(value)), [&] {
      best = value;
      best_place = place;
    });
  });
}

ir::Kernel pool_kernel(Kind kind, DType type) {
  return kernel(kind_name(kind), 256, [&] {
    const bool has_two = kind == Kind::select_largest || kind == Kind::spread_largest;
    auto x = in("x", type);
    auto v = has_two ? in("v", type) : x;
    auto y = out("y", type);
    const Value count = param("count", u32);
    const WindowParams w = WindowParams::declare();
    const Value plane = w.height * w.width, outputs = w.out_y * w.out_x;
    const bool spreads = kind == Kind::spread_largest || kind == Kind::spread_mean;
    const DType reg = register_type(type);
    const Value i = global_id();
    if_(i < count, [&] {
      const Value own = spreads ? plane : outputs, wide = spreads ? w.width : w.out_x;
      const Value image = i / own, place = i - image * own;
      const Value row = place / wide, column = place - row * wide;
      Var sum(constant(reg, 0.0), "sum");
      Var best(constant(reg, 0.0), "best"), best_place(u32, 0u, "best_place");
      if (kind == Kind::largest || kind == Kind::select_largest) {
        find_largest(w, x, type, image * plane, row, column, best, best_place);
        if (kind == Kind::largest)
          sum = best;
        else
          sum = load_element(v, image * plane + best_place, type);
      } else if (kind == Kind::mean) {
        Var inside(constant(reg, 0.0), "inside");
        w.for_taps(row, column, [&](Value at, Value) {
          sum += load_element(x, image * plane + at, type);
          inside += constant(reg, 1.0);
        });
        sum = sum / inside;
      } else {
        w.for_windows(row, column, [&](Value window, Value) {
          const Value window_row = window / w.out_x, window_column = window - window_row * w.out_x;
          if (kind == Kind::spread_largest) {
            find_largest(w, x, type, image * plane, window_row, window_column, best, best_place);
            if_(best_place == place,
                [&] { sum += load_element(v, image * outputs + window, type); });
          } else {
            Var inside(constant(reg, 0.0), "inside");
            w.for_taps(window_row, window_column,
                       [&](Value, Value) { inside += constant(reg, 1.0); });
            sum += load_element(x, image * outputs + window, type) / inside;
          }
        });
      }
      y[i] = to_stored(sum, type);
    });
  });
}

// --- the CPU, plane by plane

template <class Visit>
void for_taps(const Windows& w, int64_t window, const Visit& visit) {
  const int64_t y = window / w.out_x, x = window % w.out_x;
  for (int64_t v = 0; v < w.window_y; ++v) {
    const int64_t row = y * w.stride_y + v - w.padding_y;
    if (row < 0 || row >= w.height) continue;
    for (int64_t u = 0; u < w.window_x; ++u) {
      const int64_t column = x * w.stride_x + u - w.padding_x;
      if (column >= 0 && column < w.width) visit(row * w.width + column);
    }
  }
}

template <class T>
void pool_plane(Kind kind, const Windows& w, const T* x, const T* v, T* y) {
  if (kind == Kind::spread_largest || kind == Kind::spread_mean) std::fill(y, y + w.plane(), T{0});
  for (int64_t window = 0; window < w.outputs(); ++window) {
    if (kind == Kind::mean || kind == Kind::spread_mean) {
      T sum = 0;
      int64_t inside = 0;
      for_taps(w, window, [&](int64_t place) {
        ++inside;
        if (kind == Kind::mean) sum += x[place];
      });
      if (kind == Kind::mean)
        y[window] = sum / static_cast<T>(inside);
      else
        for_taps(w, window, [&](int64_t place) { y[place] += x[window] / static_cast<T>(inside); });
      continue;
    }
    int64_t best = -1;
    for_taps(w, window, [&](int64_t place) {
      if (best < 0 || (x[best] == x[best] && !(x[place] <= x[best]))) best = place;
    });
    if (kind == Kind::spread_largest)
      y[best] += v[window];
    else
      y[window] = kind == Kind::largest ? x[best] : v[best];
  }
}

class PoolOp : public Op {
 public:
  PoolOp(Kind kind, const Windows& windows) : kind_(kind), windows_(windows) {}
  std::string_view name() const override { return kind_name(kind_); }
  std::string attributes() const override {
    return fmt::format("{} x {}", windows_.window_y, windows_.window_x);
  }

  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    Shape shape = inputs[0].shape();
    const bool spreads = kind_ == Kind::spread_largest || kind_ == Kind::spread_mean;
    shape[2] = spreads ? windows_.height : windows_.out_y;
    shape[3] = spreads ? windows_.width : windows_.out_x;
    return {{shape, inputs[0].type()}};
  }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    const Tensor &x = call.inputs[0], &g = call.output_gradients[0];
    switch (kind_) {
      case Kind::largest:
        return {use(Kind::spread_largest, {x, g})};
      case Kind::select_largest:
        return {Tensor(), use(Kind::spread_largest, {x, g})};
      case Kind::spread_largest:
        return {Tensor(), use(Kind::select_largest, {x, g})};
      case Kind::mean:
        return {use(Kind::spread_mean, {g})};
      case Kind::spread_mean:
        return {use(Kind::mean, {g})};
    }
    return {};
  }

  void run_cpu(const CpuCall& call) const override {
    with_float(call.outputs[0].type.plain(), [&](auto sample) { run<decltype(sample)>(call); });
  }

  void launch(DeviceCall& call) const override {
    const DType type = call.output().type.plain();
    const int64_t count = call.output().elements();
    std::vector<ParamValue> params = {static_cast<uint32_t>(count)};
    for (const ParamValue& each : windows_.params()) params.push_back(each);
    std::vector<DeviceView> buffers;
    for (size_t i = 0; i < call.input_count(); ++i) buffers.push_back(call.input(i));
    buffers.push_back(call.output());
    call.launch(
        fmt::format("{} {}", name(), dtype_name(type)), [&] { return pool_kernel(kind_, type); },
        {groups_for(count, 256), 1, 1}, buffers, std::move(params));
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override {
    const std::string reason = lacks_type(device.capabilities, inputs[0].type().plain());
    return reason.empty() ? std::nullopt : std::optional(reason);
  }

 private:
  Tensor use(Kind kind, std::vector<Tensor> inputs) const {
    return use_op(std::make_shared<PoolOp>(kind, windows_), std::move(inputs));
  }

  template <class T>
  void run(const CpuCall& call) const {
    constexpr DType reg = dtype_of<T>();
    const HostView& y = call.outputs[0];
    const DType type = y.type.plain();
    const auto images = static_cast<uint64_t>(y.layout.shape[0] * y.layout.shape[1]);
    const auto plane_of = [](const HostView& view) {
      return static_cast<size_t>(view.layout.shape[2] * view.layout.shape[3]);
    };
    const auto place_of = [&](const HostView& view, uint64_t image) {
      return view.data + (static_cast<size_t>(view.layout.offset) + image * plane_of(view)) *
                             view.type.block_bytes();
    };
    call.pool.parallel_for(images, 1, [&](uint64_t first, uint64_t last) {
      std::vector<T> inputs[2], result(plane_of(y));
      for (uint64_t image = first; image < last; ++image) {
        for (size_t i = 0; i < call.inputs.size(); ++i) {
          inputs[i].resize(plane_of(call.inputs[i]));
          cpu::load(type, place_of(call.inputs[i], image), 1, reg, inputs[i].data(),
                    inputs[i].size());
        }
        pool_plane(kind_, windows_, inputs[0].data(), inputs[1].data(), result.data());
        cpu::store(reg, result.data(), type, place_of(y, image), result.size());
      }
    });
  }

  Kind kind_;
  Windows windows_;
};

Tensor pool(const char* op, Kind kind, const Tensor& x, const Pool2dOptions& options) {
  if (!x || x.rank() != 4)
    fail(fmt::format("{}: x {}; it must have four axes", op, x.shape().text()));
  if (x.type().is_block() || !is_float(x.type().plain()))
    fail(fmt::format("{}: x is {}; it must be a float type", op, x.type().name()));
  if (x.shape()[2] == 0 || x.shape()[3] == 0)
    fail(fmt::format("{}: x {}; the last two axes must not be empty", op, x.shape().text()));
  Windows windows;
  windows.height = x.shape()[2], windows.width = x.shape()[3];
  windows.window_y = options.height, windows.window_x = options.width;
  windows.stride_y = options.stride_y ? options.stride_y : options.height;
  windows.stride_x = options.stride_x ? options.stride_x : options.width;
  windows.padding_y = options.padding_y, windows.padding_x = options.padding_x;
  if (2 * options.padding_y > options.height || 2 * options.padding_x > options.width) {
    fail(fmt::format(
        "{}: padding {} x {} for windows {} x {}; it must be at most half of the window", op,
        options.padding_y, options.padding_x, options.height, options.width));
  }
  return use_op(std::make_shared<PoolOp>(kind, ops::windows_of(op, windows)), {x});
}

Tensor pool(const char* op, Kind kind, const Tensor& x, const Pool1dOptions& options) {
  if (!x || x.rank() != 3)
    fail(fmt::format("{}: x {}; it must have three axes", op, x.shape().text()));
  Pool2dOptions wide;
  wide.height = 1, wide.width = options.length;
  wide.stride_x = options.stride, wide.padding_x = options.padding;
  return pool(op, kind, x.unsqueeze(2), wide).squeeze(2);
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return pool("max_pool2d", Kind::largest, x, options);
}
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return pool("avg_pool2d", Kind::mean, x, options);
}
Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options) {
  return pool("max_pool1d", Kind::largest, x, options);
}
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options) {
  return pool("avg_pool1d", Kind::mean, x, options);
}

}  // namespace prism
