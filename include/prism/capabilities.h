// Capabilities: the features a device supports natively; lowering rewrites the rest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "prism/dtype.h"

#pragma GCC visibility push(default)

namespace prism::ir {

// A matrix fragment shape that the device multiplies in hardware.
struct FragmentShape {
  DType operand = DType::f16;
  DType accumulator = DType::f32;
  uint16_t m = 16, n = 16, k = 16;
  friend bool operator==(const FragmentShape&, const FragmentShape&) = default;
};

struct Capabilities {
  std::string dialect;         // printer: cuda, hip, opencl, metal, sycl, wgsl, spirv, interpreter
  uint32_t dialect_level = 0;  // the printer's own measure (CUDA: compute capability x10, e.g. 90)
  bool storage_8 = true;       // buffers of 8-bit elements
  bool storage_16 = true;      // buffers of 16-bit integers
  bool storage_f16 = true;     // buffers of f16 converted by the device, rounding to nearest even
  bool storage_bf16 = false;   // the same for bf16
  bool narrow_arrays = true;   // shared and private arrays of 8- and 16-bit elements
  bool math_f16 = false;       // f16 values
  bool math_i64 = false;       // i64 and u64 values
  bool math_f64 = false;
  bool precise_math = false;   // exp, log, sin, cos, tanh within 4 ulp; otherwise Prism's are used
  bool dot4 = false;           // dot4_i8, dot4_u8
  bool float_atomics = false;  // f32 atomic add on buffers and shared memory
  bool async_copy = false;
  bool device_fence = false;      // groups of one launch can see each other's writes
  bool dependent_launch = false;  // wait_previous and launch_next have an effect
  uint32_t subgroup_size = 0;  // kernels are specialised for this size; 0: no subgroup operations
  std::vector<uint32_t> subgroup_sizes;  // every size the device supports
  std::vector<FragmentShape> fragments;  // need subgroup_size
  bool fragment_layout =
      false;  // the printer knows the lane-to-element mapping: map, row_reduce, convert
  uint32_t max_group_size = 256;
  uint32_t shared_bytes = 16384;
  uint32_t max_buffers = 8;  // bindings per kernel, pieces of split buffers included
  uint64_t max_binding_bytes = 128ull << 20;
  std::array<uint32_t, 3> max_groups = {65535, 65535, 65535};
  bool raw_atomic_buffers = false;  // a buffer is entirely atomic or not at all (WGSL)

  // A key covering everything above, for caches.
  std::string key() const;
};

}  // namespace prism::ir

#pragma GCC visibility pop
