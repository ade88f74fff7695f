// Vectorised steps of attention over single rows.
#pragma once

#include <cstddef>

namespace prism::cpu {

// scores[i] = cap * tanh(scores[i] * scale / cap) + mask[i]; no cap if soft_cap is 0, no mask if it
// is null. Returns the largest score.
float finish_scores(float* scores, size_t n, float scale, float soft_cap, const float* mask);
// scores[i] = exp(scores[i] - largest). Returns the sum.
float weights_of_scores(float* scores, size_t n, float largest);
// slopes[i] = weights[i] * (slopes[i] - total) * scale: the slopes of scores from those of weights.
void slopes_of_scores(const float* weights, float* slopes, size_t n, float total, float scale);
void scale_row(float* x, size_t n, float factor);
// blocks: q8_0 in file layout; n is a multiple of 32.
void f32_from_q8_0(const void* blocks, float* to, size_t n);

}  // namespace prism::cpu
