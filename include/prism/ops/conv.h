// Convolutions and pooling over one or two axes.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

struct Conv2dOptions {
  int64_t stride_y = 1, stride_x = 1;
  int64_t padding_y = 0, padding_x = 0;  // zeros on both sides
  int64_t dilation_y = 1, dilation_x = 1;
  int64_t groups = 1;
};
// x [n, channels, height, width], weight [filters, channels / groups, height, width]. Computes the
// cross-correlation, as usual in neural networks. bias [filters] is optional. All have one float
// type; sums are in f32 or wider.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options = {},
              const Tensor& bias = {});

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
// x [n, channels, length], weight [filters, channels / groups, length].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Conv1dOptions& options = {},
              const Tensor& bias = {});

struct Pool2dOptions {
  int64_t height = 2, width = 2;         // of the window
  int64_t stride_y = 0, stride_x = 0;    // 0: the window's size
  int64_t padding_y = 0, padding_x = 0;  // at most half the window
};
// The maximum of each window of x [n, channels, height, width]; propagates NaN. Among equal maxima
// the first gets the gradient.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});
// The mean over the elements of x in each window; padding does not count.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {});

struct Pool1dOptions {
  int64_t length = 2, stride = 0, padding = 0;
};
Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options = {});  // x [n, channels, length]
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options = {});

}  // namespace prism

#pragma GCC visibility pop
