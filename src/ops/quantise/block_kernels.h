// Kernels that decode block-quantised tensors from planes (base/types/gpu_block_layout.h) to plain
// ones: all rows, or rows selected by indices.
//
// Elements equal those of cpu/quantise/dequantise.h, rounded to the type of y. Each kernel function
// takes the specialisation; shapes are params. The _launch function beside it gives the grid and
// params.
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

// y[r][c] = element (r, c). Eight elements per lane, groups of 256 lanes along axis 0.
// Buffers: planes (u32, layout.bytes()), y (f32, f16 or bf16; rows x columns).
// Params: count (lanes in use), pieces (lanes per row), then row_words, high_at, scales_at,
// factors_at (words between rows, and from the start of a row to each plane).
ir::Kernel dequantise_gpu_blocks(BlockType type, DType y);
BlockLaunch dequantise_gpu_blocks_launch(const GpuBlockLayout& layout);

// y[i][c] = element (indices[i], c): an embedding. A row with an index out of range becomes NaN,
// because a kernel cannot throw.
// Buffers: planes (u32), indices (i32), y (f32, f16 or bf16; count x columns).
// Params: count, pieces, rows, then the same as above.
ir::Kernel gather_gpu_blocks(BlockType type, DType y);
BlockLaunch gather_gpu_blocks_launch(const GpuBlockLayout& layout, uint64_t indices);

}  // namespace prism::ops
