// Functions of whole rows (contiguous arrays of n elements): reductions, softmax, norms, cumulative
// sums. Sums are in f64, so that their error does not grow with n.
#pragma once

#include <cstddef>

namespace prism::cpu {

double row_sum(const float* x, size_t n);
double row_sum(const double* x, size_t n);

double row_dot(const double* x, const double* y, size_t n);
// In f32 within pieces of 1,024 elements, in f64 between pieces.
double row_dot(const float* x, const float* y, size_t n);

// NaN propagates. Without elements: -infinity for the maximum, +infinity for the minimum.
float row_max(const float* x, size_t n);
double row_max(const double* x, size_t n);
float row_min(const float* x, size_t n);
double row_min(const double* x, size_t n);
// The first index of the extreme, or of the first NaN if there is one; 0 without elements.
size_t row_argmax(const float* x, size_t n);
size_t row_argmax(const double* x, size_t n);
size_t row_argmin(const float* x, size_t n);
size_t row_argmin(const double* x, size_t n);

struct Moments {
  double mean;
  double variance;  // the sum of squared differences divided by n - correction
};
Moments row_moments(const float* x, size_t n, double correction = 0);
Moments row_moments(const double* x, size_t n, double correction = 0);

// out[i] = x[0] + ... + x[i]. Here and below, out may be x.
void row_cumsum(const float* x, float* out, size_t n);
void row_cumsum(const double* x, double* out, size_t n);

// exp(x - max) / sum; all NaN if x contains NaN or +infinity, or only -infinity.
void row_softmax(const float* x, float* out, size_t n);
void row_softmax(const double* x, double* out, size_t n);
void row_log_softmax(const float* x, float* out, size_t n);
void row_log_softmax(const double* x, double* out, size_t n);

// (x - mean) * scale
void row_normalise(const float* x, double mean, double scale, float* out, size_t n);

// (x - mean) / sqrt(variance + epsilon) * weight + bias; weight and bias have n elements or are
// null.
void row_layer_norm(const float* x, const float* weight, const float* bias, double epsilon,
                    float* out, size_t n);
void row_layer_norm(const double* x, const double* weight, const double* bias, double epsilon,
                    double* out, size_t n);
// x / sqrt(mean(x^2) + epsilon) * weight.
void row_rms_norm(const float* x, const float* weight, double epsilon, float* out, size_t n);
void row_rms_norm(const double* x, const double* weight, double epsilon, double* out, size_t n);

}  // namespace prism::cpu
