// Steps of attention over single rows, in vector code.
#pragma once

#include <cstddef>

namespace prism::cpu {

// scores[i] = cap * tanh(scores[i] * scale / cap) + mask[i]; without cap or mask where they are 0
// or null. Returns the largest.
float finish_scores(float* scores, size_t n, float scale, float soft_cap, const float* mask);
// scores[i] = exp(scores[i] - largest). Returns the sum.
float weights_of_scores(float* scores, size_t n, float largest);
void scale_row(float* x, size_t n, float factor);
// Blocks of q8_0 as files hold them; n is a multiple of 32.
void f32_from_q8_0(const void* blocks, float* to, size_t n);

}  // namespace prism::cpu
