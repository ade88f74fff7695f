// The gradient of gelu over arrays of f32.
#pragma once

#include <cstddef>

namespace prism::cpu {

// out[i] = g[i] times the slope of gelu at x[i], with an absolute error of the slope of 2e-7. out
// may be g or x.
void gelu_gradient(const float* x, const float* g, float* out, size_t n);

}  // namespace prism::cpu
