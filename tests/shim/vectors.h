// Vectors with the type names of OpenCL C and Metal.
#pragma once

#include "numbers.h"

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
using half = shim::half;

// Aligned to their whole size, as in the languages.
#define PRISM_SHIM_VECTORS(type)                                        \
  struct alignas(2 * sizeof(type)) type##2 {                            \
    type x, y;                                                          \
    type##2() = default;                                                \
    type##2(type a, type b) : x(a), y(b) {}                             \
  };                                                                    \
  struct alignas(4 * sizeof(type)) type##4 {                            \
    type x, y, z, w;                                                    \
    type##4() = default;                                                \
    type##4(type a, type b, type c, type d) : x(a), y(b), z(c), w(d) {} \
  };
PRISM_SHIM_VECTORS(char)
PRISM_SHIM_VECTORS(uchar)
PRISM_SHIM_VECTORS(short)
PRISM_SHIM_VECTORS(ushort)
PRISM_SHIM_VECTORS(int)
PRISM_SHIM_VECTORS(uint)
PRISM_SHIM_VECTORS(long)
PRISM_SHIM_VECTORS(ulong)
PRISM_SHIM_VECTORS(half)
PRISM_SHIM_VECTORS(float)
PRISM_SHIM_VECTORS(double)
PRISM_SHIM_VECTORS(bool)
