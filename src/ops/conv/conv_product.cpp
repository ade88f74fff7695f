// Convolutions with many channels as matrix products: im2col and col2im over batches of images.
#include <algorithm>

#include <fmt/format.h>

#include "ops/conv/conv_op.h"
#include "ops/products/matmul_op.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/chain/chain_op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;
using Kind = ConvOp::Kind;
using Sizes = ConvOp::Sizes;
using prism::Layout;

// Size of the columns of one batch: about what the cache of a large GPU holds.
constexpr int64_t kMostBytes = 64 << 20;

// One lane per window of a channel (group y) of an image (group z): writes its taps to rows of
// columns.
ir::Kernel unfold_kernel(DType type) {
  return kernel("unfold", 256, [&] {
    const In x = in("x", type);
    const Array columns = out("columns", type);
    const Value channels = param("channels", u32), image_step = param("image_step", u32),
                row_step = param("row_step", u32);
    const auto w = ops::WindowParams::declare();
    const Value i = global_id(), c = group_id(1), b = group_id(2);
    if_(i < w.out_y * w.out_x, [&] {
      const Value y = i / w.out_x, first = (b * channels + c) * w.height * w.width;
      const Value to = b * image_step + c * w.window_y * w.window_x * row_step + i;
      for_(w.window_y, [&](Value v) {
        for_(w.window_x, [&](Value u) {
          const Value row = y * w.stride_y + v * w.dilation_y - w.padding_y;
          const Value column = (i - y * w.out_x) * w.stride_x + u * w.dilation_x - w.padding_x;
          const Value inside = row < w.height && column < w.width;  // unsigned: places before the
                                                                    // plane wrap
          columns[to + (v * w.window_x + u) * row_step] =
              x.load_if(inside, first + row * w.width + column);
        });
      });
    });
  });
}

// One lane per element of x: sums the elements of the columns that came from it.
ir::Kernel fold_kernel(DType type) {
  const DType wide = register_type(type);
  return kernel("fold", 256, [&] {
    const In columns = in("columns", wide);
    const Array y = out("y", type);
    const Value count = param("count", u32);
    const auto w = ops::WindowParams::declare();
    const Value i = global_id(), plane = w.height * w.width;
    if_(i < count, [&] {
      const Value image = i / plane, place = i - image * plane, row = place / w.width;
      const Value first = image * w.window_y * w.window_x, outputs = w.out_y * w.out_x;
      Var sum(wide, constant(wide, 0.0), "sum");
      w.for_windows(row, place - row * w.width, [&](Value window, Value tap) {
        sum += columns[(first + tap) * outputs + window];
      });
      y[i] = to_stored(sum, type);
    });
  });
}

ParamValue word(int64_t value) { return ParamValue(static_cast<uint32_t>(value)); }

std::vector<ParamValue> with_windows(std::vector<ParamValue> params, const Sizes& s) {
  for (const ParamValue& each : s.windows.params()) params.push_back(each);
  return params;
}

int64_t rows_of(const Sizes& s) { return s.channels * s.windows.taps(); }

// 1 x 1 windows without stride or padding: the columns are x itself.
bool is_plain(const Sizes& s) {
  const ops::Windows& w = s.windows;
  return w.taps() == 1 && w.stride_y == 1 && w.stride_x == 1 && w.padding_y == 0 &&
         w.padding_x == 0;
}

// Views the memory from element `first` on as another shape.
DeviceView seen_as(DeviceView view, const Shape& shape, int64_t first = 0) {
  const int64_t offset = view.layout.offset + first;
  view.layout = Layout::dense(shape);
  view.layout.offset = offset;
  return view;
}

DeviceView transposed(DeviceView view) {
  Layout& layout = view.layout;
  const int last = layout.shape.rank() - 1;
  std::swap(layout.shape[last], layout.shape[last - 1]);
  std::swap(layout.strides[static_cast<size_t>(last)],
            layout.strides[static_cast<size_t>(last) - 1]);
  return view;
}

// Broadcasts one matrix to `count` matrices.
DeviceView repeated(DeviceView view, int64_t count) {
  const int64_t offset = view.layout.offset;
  view.layout = view.layout.broadcast_to({count, view.layout.shape[0], view.layout.shape[1]});
  view.layout.offset = offset;
  return view;
}

void multiply(DeviceCall& call, const DeviceView& a, const DeviceView& b, const DeviceView& c) {
  DeviceCall product(call.device(), {a, b}, {c}, [&](uint64_t bytes) {
    return call.scratch(Shape{static_cast<int64_t>(bytes)}, DType::u8).slot;
  });
  MatmulOp().launch(product);
  for (PlannedLaunch& each : product.launches()) call.launches().push_back(std::move(each));
}

// Element (row, window) of image b at b * image_step + row * row_step + window.
void unfold(DeviceCall& call, const Sizes& s, const DeviceView& x, int64_t images,
            int64_t image_step, int64_t row_step, const DeviceView& columns) {
  const DType type = x.type.plain();
  call.launch(
      fmt::format("unfold {}", dtype_name(type)), [&] { return unfold_kernel(type); },
      {groups_for(s.windows.outputs(), 256), static_cast<uint32_t>(s.channels),
       static_cast<uint32_t>(images)},
      {x, columns}, with_windows({word(s.channels), word(image_step), word(row_step)}, s));
}

// Images whose columns are computed at once, in batches that start at an offset a buffer can be
// bound at; nullopt if that needs too much memory.
std::optional<int64_t> images_at_once(const Sizes& s, Kind kind, DType type) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(type));
  const auto wide = static_cast<int64_t>(dtype_bytes(register_type(type)));
  const int64_t each =
      rows_of(s) * s.windows.outputs() * (kind == Kind::input_gradient ? wide : bytes);
  int64_t step = kind == Kind::weight_gradient ? s.batch : 1;  // a sum over all images
  const auto starts = [&](int64_t elements) {
    return step * elements * bytes % static_cast<int64_t>(kRangeAlignment) == 0;
  };
  while (step < s.batch &&
         !(starts(s.channels * s.windows.plane()) && starts(s.filters * s.windows.outputs())))
    ++step;
  if (!is_plain(s) && step * each > 8 * kMostBytes) return std::nullopt;
  return is_plain(s) ? s.batch : std::min(s.batch, std::max(step, kMostBytes / each / step * step));
}

}  // namespace

bool ConvOp::is_product(const DeviceInfo& device, DType type) const {
  // OpenCL and SYCL compilers for CPUs are slow on product kernels for many rows.
  if (device.software && device.capabilities.dialect != "spirv") return false;
  const int64_t windows = sizes_.batch * sizes_.windows.outputs();
  return sizes_.groups == 1 && sizes_.filters >= 32 && rows_of(sizes_) >= 32 && windows >= 64 &&
         images_at_once(sizes_, kind_, type).has_value();
}

void ConvOp::launch_product(DeviceCall& call) const {
  const Sizes& s = sizes_;
  const DType type = call.output().type.plain();
  const int64_t k = rows_of(s), outputs = s.windows.outputs(),
                x_image = s.channels * s.windows.plane(), y_image = s.filters * outputs,
                at_once = *images_at_once(s, kind_, type);
  const bool plain = is_plain(s);
  if (kind_ == Kind::weight_gradient) {
    // Concatenate the windows of all images, so that one product sums over them.
    const int64_t all = s.batch * outputs;
    DeviceView g = seen_as(call.input(1), {s.filters, all});
    if (s.batch > 1) {
      DeviceView by_filter = seen_as(call.input(1), {s.filters, s.batch, outputs});
      by_filter.layout.strides = {outputs, y_image, 1};
      g = call.scratch({s.filters, s.batch, outputs}, type);
      launch_chain(call, copy_chain(type), std::span(&by_filter, 1), g);
      g = seen_as(g, {s.filters, all});
    }
    DeviceView columns = seen_as(call.input(0), {k, all});
    if (!plain || s.batch > 1) {
      columns = call.scratch({k, all}, type);
      unfold(call, s, call.input(0), s.batch, outputs, all, columns);
    }
    return multiply(call, g, transposed(columns), seen_as(call.output(), {s.filters, k}));
  }
  const DeviceView weight = seen_as(call.input(1), {s.filters, k});
  std::optional<DeviceView> columns;
  if (!plain)
    columns =
        call.scratch({at_once, k, outputs}, kind_ == Kind::forward ? type : register_type(type));
  for (int64_t first = 0; first < s.batch; first += at_once) {
    const int64_t images = std::min(at_once, s.batch - first);
    const Shape columns_shape = {images, k, outputs}, y_shape = {images, s.filters, outputs};
    if (kind_ == Kind::forward) {
      const DeviceView x = seen_as(call.input(0), columns_shape, first * x_image);
      if (columns) unfold(call, s, x, images, k * outputs, outputs, *columns);
      multiply(call, repeated(weight, images), columns ? seen_as(*columns, columns_shape) : x,
               seen_as(call.output(), y_shape, first * y_image));
    } else {
      const DeviceView g = seen_as(call.input(0), y_shape, first * y_image);
      const DeviceView x = seen_as(call.output(), columns_shape, first * x_image);
      multiply(call, repeated(transposed(weight), images), g,
               columns ? seen_as(*columns, columns_shape) : x);
      if (columns)
        call.launch(
            fmt::format("fold {}", dtype_name(type)), [&] { return fold_kernel(type); },
            {groups_for(images * x_image, 256), 1, 1}, {*columns, x},
            with_windows({word(images * x_image)}, s));
    }
  }
}

}  // namespace prism
