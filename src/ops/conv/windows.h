// The geometry of sliding windows, shared by convolutions and pooling.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/device.h"
#include "prism/kernel.h"
#include "prism/shape.h"

namespace prism::ops {

struct Windows {
  int64_t height = 1, width = 1;       // of a plane of x
  int64_t window_y = 1, window_x = 1;  // of the window
  int64_t out_y = 1, out_x = 1;        // number of windows
  int64_t stride_y = 1, stride_x = 1;
  int64_t padding_y = 0, padding_x = 0;
  int64_t dilation_y = 1, dilation_x = 1;

  int64_t plane() const { return height * width; }
  int64_t outputs() const { return out_y * out_x; }
  int64_t taps() const { return window_y * window_x; }

  std::vector<ParamValue> params() const;  // 12 words, in the order of WindowParams
};

// Fills out_y and out_x. Throws kInvalidArgument, naming op, for an invalid window, stride,
// dilation or padding and for windows larger than the padded plane.
Windows windows_of(const char* op, Windows windows);

// The same parameters inside a kernel.
struct WindowParams {
  dsl::Value height, width, window_y, window_x, out_y, out_x, stride_y, stride_x, padding_y,
      padding_x, dilation_y, dilation_x;
  static WindowParams declare();

  // Calls body(place, tap) for the elements of window (y, x) that are inside the plane.
  void for_taps(dsl::Value y, dsl::Value x,
                const std::function<void(dsl::Value place, dsl::Value tap)>& body) const;
  // Calls body(window, tap) for each window that contains element (y, x), at tap `tap`.
  void for_windows(dsl::Value y, dsl::Value x,
                   const std::function<void(dsl::Value window, dsl::Value tap)>& body) const;
};

}  // namespace prism::ops
