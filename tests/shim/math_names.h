// Overloaded math functions for dialects that use C's names without a suffix.
#pragma once

#include "numbers.h"

PRISM_SHIM_MATH(floor)
PRISM_SHIM_MATH(ceil)
PRISM_SHIM_MATH(trunc)
PRISM_SHIM_MATH(rint)
PRISM_SHIM_MATH(sqrt)
PRISM_SHIM_MATH(exp)
PRISM_SHIM_MATH(exp2)
PRISM_SHIM_MATH(log)
PRISM_SHIM_MATH(log2)
PRISM_SHIM_MATH(sin)
PRISM_SHIM_MATH(cos)
PRISM_SHIM_MATH(tanh)
PRISM_SHIM_MATH(fabs)
inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
// In f64 the product is exact and the sum keeps every bit that matters to f16.
inline shim::half fma(shim::half a, shim::half b, shim::half c) {
  return shim::half(static_cast<double>(float(a)) * float(b) + float(c));
}
inline float rsqrt(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline shim::half rsqrt(shim::half x) { return shim::half(1.0f / std::sqrt(float(x))); }
inline unsigned popcount(unsigned x) { return static_cast<unsigned>(__builtin_popcount(x)); }
inline unsigned clz(unsigned x) { return x == 0 ? 32u : static_cast<unsigned>(__builtin_clz(x)); }
