// Row functions for f64, as plain loops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/rows.h"

namespace prism::cpu {
namespace {

// Four independent sums shorten the dependency chain.
template <class Term>
double sum_of(size_t n, Term term) {
  double sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (size_t k = 0; k < 4; ++k) sums[k] += term(i + k);
  for (; i < n; ++i) sums[0] += term(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// better(a, b): whether a replaces b.
template <class Better>
size_t first_best(const double* x, size_t n, Better better) {
  size_t best = 0;
  for (size_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) return i;
    if (better(x[i], x[best])) best = i;
  }
  return best;
}

}  // namespace

double row_sum(const double* x, size_t n) {
  return sum_of(n, [x](size_t i) { return x[i]; });
}

double row_dot(const double* x, const double* y, size_t n) {
  return sum_of(n, [x, y](size_t i) { return x[i] * y[i]; });
}

size_t row_argmax(const double* x, size_t n) {
  return first_best(x, n, [](double a, double b) { return a > b; });
}

size_t row_argmin(const double* x, size_t n) {
  return first_best(x, n, [](double a, double b) { return a < b; });
}

double row_max(const double* x, size_t n) {
  return n == 0 ? -std::numeric_limits<double>::infinity() : x[row_argmax(x, n)];
}

double row_min(const double* x, size_t n) {
  return n == 0 ? std::numeric_limits<double>::infinity() : x[row_argmin(x, n)];
}

Moments row_moments(const double* x, size_t n, double correction) {
  const double mean = row_sum(x, n) / static_cast<double>(n);
  const double squares = sum_of(n, [x, mean](size_t i) { return (x[i] - mean) * (x[i] - mean); });
  return {mean, squares / (static_cast<double>(n) - correction)};
}

void row_cumsum(const double* x, double* out, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) out[i] = sum += x[i];
}

void row_softmax(const double* x, double* out, size_t n) {
  const double largest = row_max(x, n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += out[i] = std::exp(x[i] - largest);
  for (size_t i = 0; i < n; ++i) out[i] /= sum;
}

void row_log_softmax(const double* x, double* out, size_t n) {
  const double largest = row_max(x, n);
  const double log_sum =
      std::log(sum_of(n, [x, largest](size_t i) { return std::exp(x[i] - largest); }));
  for (size_t i = 0; i < n; ++i) out[i] = (x[i] - largest) - log_sum;
}

void row_layer_norm(const double* x, const double* weight, const double* bias, double epsilon,
                    double* out, size_t n) {
  const Moments moments = row_moments(x, n);
  const double scale = 1 / std::sqrt(moments.variance + epsilon);
  for (size_t i = 0; i < n; ++i)
    out[i] = (x[i] - moments.mean) * scale * (weight ? weight[i] : 1.0) + (bias ? bias[i] : 0.0);
}

void row_rms_norm(const double* x, const double* weight, double epsilon, double* out, size_t n) {
  const double scale = 1 / std::sqrt(row_dot(x, x, n) / static_cast<double>(n) + epsilon);
  for (size_t i = 0; i < n; ++i) out[i] = x[i] * scale * (weight ? weight[i] : 1.0);
}

}  // namespace prism::cpu
