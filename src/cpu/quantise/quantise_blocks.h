// One function a writable type: a block from its elements and their weights. Used by quantise.cpp.
#pragma once

#include "base/types/block_formats.h"

namespace prism::cpu {

// x and w hold as many finite elements as the block; w are 0 or more and not all 0.
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
