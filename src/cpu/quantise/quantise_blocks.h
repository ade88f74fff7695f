// One encoding function per writable type: makes a block from elements and weights. Used by
// quantise.cpp.
#pragma once

#include "base/types/block_formats.h"

namespace prism::cpu {

// x and w hold one finite value per element of the block; w is non-negative and not all 0.
void encode(const float* x, const float* w, BlockQ4_0& block);
void encode(const float* x, const float* w, BlockQ4_1& block);
void encode(const float* x, const float* w, BlockQ5_0& block);
void encode(const float* x, const float* w, BlockQ5_1& block);
void encode(const float* x, const float* w, BlockQ8_0& block);
void encode(const float* x, const float* w, BlockQ2_K& block);
void encode(const float* x, const float* w, BlockQ3_K& block);
void encode(const float* x, const float* w, BlockQ4_K& block);
void encode(const float* x, const float* w, BlockQ5_K& block);
void encode(const float* x, const float* w, BlockQ6_K& block);
void encode(const float* x, const float* w, BlockMXFP4& block);

}  // namespace prism::cpu
