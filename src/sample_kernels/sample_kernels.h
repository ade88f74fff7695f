// Builders of the sample kernels, for sizes and types other than those in the library.
#pragma once

#include <cstdint>

#include "prism/dtype.h"
#include "prism/kernel_ir.h"

namespace prism::kernels {

// --- one element per lane (sample_elementwise.cpp); params: count
ir::Kernel vector_add(DType type);         // a, b -> y
ir::Kernel copy_words();                   // x -> y: 16 bytes per lane; count in words of 16 bytes
ir::Kernel fill();                         // y; params: count, value (f32)
ir::Kernel iota();                         // y (u32)
ir::Kernel convert(DType from, DType to);  // x -> y
ir::Kernel math();                         // x -> y: eight functions of each element
ir::Kernel bits();                         // a, b -> y: twelve integer operations of each pair
ir::Kernel half_arithmetic();              // a, b -> y: f16 values
ir::Kernel increment();                    // y += 1: one group, for measuring launches

// --- rows and columns (sample_rows.cpp)
ir::Kernel
transpose();            // x (rows x columns) -> y; params: rows, columns; grid: columns/32, rows/32
ir::Kernel sum_rows();  // x -> y; params: width; one group per row
ir::Kernel row_softmax();   // x -> y; params: width; one group per row
ir::Kernel row_scan();      // x (u32) -> y: inclusive sums; params: width; one group per row
ir::Kernel subgroup_mix();  // x (u32) -> y: reductions, scans and shuffles; subgroups of 8

// --- atomics (sample_atomics.cpp)
ir::Kernel histogram();           // x (u8) -> counts (u32, 256); params: count
ir::Kernel weighted_histogram();  // x (u8), weight (f32) -> sums (f32, 256); params: count

// --- products (sample_matmul.cpp, sample_fragments.cpp)
ir::Kernel matmul_f32();  // a (m x k), b (k x n) -> c; params: m, n, k; grid: n/128, m/128
struct MatmulTile {
  uint32_t m = 32, n = 32, k = 32;    // tile of one group
  uint32_t warps_m = 2, warps_n = 2;  // subgroups of 32 in each direction
  uint32_t stages = 2;                // tiles in flight, at least 2
  bool run_ahead = false;  // prefetch the next operands while multiplying; twice the registers
  DType operand = DType::f16;
  DType result = DType::f32;
};
// c = a * b by fragments; m, n, k multiples of the tile; grid: (m/tile.m) * (n/tile.n) groups;
// params: m, n, k
ir::Kernel matmul_fragments(const MatmulTile& tile);
ir::Kernel
fragment_attention();  // q, k, v (16 x 16 tiles, f16) -> o (f32): softmax(q k^T) v; params: tiles
ir::Kernel int8_matmul();  // fragments of i8; params: m, n, k
ir::Kernel dot_rows();     // a (rows of i8), b (one row of i8) -> y (i32); params: words per row

// --- random numbers (sample_philox.cpp): four words per lane; params: count, seed_low, seed_high
ir::Kernel philox();
ir::Kernel uniform_f32();  // [0, 1) from the same stream

// --- limits (sample_limits.cpp)
ir::Kernel many_groups();     // y[group] = a hash of the group
ir::Kernel stride_through();  // big (u32) -> y, and big[i * stride + 1] = i; params: count, stride

}  // namespace prism::kernels
