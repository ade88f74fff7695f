// Sliding windows over planes, on the host and in kernels.
#include "ops/conv/windows.h"

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

Windows windows_of(const char* op, Windows w) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", op, what));
  };
  if (w.stride_y < 1 || w.stride_x < 1 || w.dilation_y < 1 || w.dilation_x < 1 || w.padding_y < 0 ||
      w.padding_x < 0 || w.window_y < 1 || w.window_x < 1) {
    fail(
        fmt::format("window {} x {}, stride {} x {}, padding {} x {}, dilation {} x {}; padding "
                    "must be at least 0, the others at least 1",
                    w.window_y, w.window_x, w.stride_y, w.stride_x, w.padding_y, w.padding_x,
                    w.dilation_y, w.dilation_x));
  }
  const auto count = [&](int64_t length, int64_t window, int64_t stride, int64_t padding,
                         int64_t dilation) {
    const int64_t span = (window - 1) * dilation + 1, padded = length + 2 * padding;
    if (padded < span)
      fail(fmt::format("the window spans {} elements; the padded input has only {}", span, padded));
    return (padded - span) / stride + 1;
  };
  w.out_y = count(w.height, w.window_y, w.stride_y, w.padding_y, w.dilation_y);
  w.out_x = count(w.width, w.window_x, w.stride_x, w.padding_x, w.dilation_x);
  return w;
}

std::vector<ParamValue> Windows::params() const {
  std::vector<ParamValue> words;
  for (const int64_t each : {height, width, window_y, window_x, out_y, out_x, stride_y, stride_x,
                             padding_y, padding_x, dilation_y, dilation_x})
    words.emplace_back(static_cast<uint32_t>(each));
  return words;
}

WindowParams WindowParams::declare() {
  const auto next = [](const char* name) { return param(name, u32); };
  const Value height = next("height"), width = next("width"), window_y = next("window_y"),
              window_x = next("window_x"), out_y = next("out_y"), out_x = next("out_x"),
              stride_y = next("stride_y"), stride_x = next("stride_x"),
              padding_y = next("padding_y"), padding_x = next("padding_x"),
              dilation_y = next("dilation_y"), dilation_x = next("dilation_x");
  return {height,   width,    window_y,  window_x,  out_y,      out_x,
          stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x};
}

void WindowParams::for_taps(Value y, Value x, const std::function<void(Value, Value)>& body) const {
  for_(window_y, [&](Value v) {
    const Value row = y * stride_y + v * dilation_y - padding_y;  // unsigned: places before the
                                                                  // plane wrap
    if_(row < height, [&] {
      for_(window_x, [&](Value u) {
        const Value column = x * stride_x + u * dilation_x - padding_x;
        if_(column < width, [&] { body(row * width + column, v * window_x + u); });
      });
    });
  });
}

void WindowParams::for_windows(Value y, Value x,
                               const std::function<void(Value, Value)>& body) const {
  for_(window_y, [&](Value v) {
    const Value above = y + padding_y - v * dilation_y, row = above / stride_y;
    if_(row < out_y && row * stride_y == above, [&] {
      for_(window_x, [&](Value u) {
        const Value left = x + padding_x - u * dilation_x, column = left / stride_x;
        if_(column < out_x && column * stride_x == left,
            [&] { body(row * out_x + column, v * window_x + u); });
      });
    });
  });
}

}  // namespace prism::ops
