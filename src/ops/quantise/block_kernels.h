// Kernels that decode block-quantised tensors from planes (base/types/gpu_block_layout.h) to plain
// ones: all rows, or the rows that indices name.
//
// Elements come out as cpu/quantise/dequantise.h gives them, then rounded to the type of y. A maker
// takes what the kernel is specialised by; shapes are params. Beside each maker stands a function
// that gives grid and params of a launch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/types/gpu_block_layout.h"
#include "prism/dtype.h"
#include "prism/kernel_ir.h"

namespace prism::ops {

struct BlockLaunch {
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<uint32_t> params;
};

// y[r][c] = element (r, c). Eight elements a lane, groups of 256 lanes along axis 0.
// Buffers: planes (u32, layout.bytes()), y (f32, f16 or bf16; rows x columns).
// Params: count (lanes in use), pieces (lanes a row), then row_words, high_at, scales_at,
// factors_at (the words from a row to the next, and from a row's start to its planes).
ir::Kernel dequantise_gpu_blocks(BlockType type, DType y);
BlockLaunch dequantise_gpu_blocks_launch(const GpuBlockLayout& layout);

// y[i][c] = element (indices[i], c): an embedding. A row whose index is negative or not below the
// number of rows becomes NaN, since a kernel cannot throw.
// Buffers: planes (u32), indices (i32), y (f32, f16 or bf16; count x columns).
// Params: count, pieces, rows, then as above.
ir::Kernel gather_gpu_blocks(BlockType type, DType y);
BlockLaunch gather_gpu_blocks_launch(const GpuBlockLayout& layout, uint64_t indices);

}  // namespace prism::ops
