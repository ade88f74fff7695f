// Gradients of norms in vector code: two passes over a row that stays in the L1 cache.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include <cmath>
#include <vector>

#include "cpu/norm_gradient.h"
#include "cpu/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/norm_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vector_loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct Plus {
  HWY_INLINE V operator()(D, V a, V b) const { return hn::Add(a, b); }
};
struct Times {
  HWY_INLINE V operator()(D, V a, V b) const { return hn::Mul(a, b); }
};
// scale * (weighted - shift - normed * along)
struct Slope {
  float scale, shift, along;
  HWY_INLINE V operator()(D d, V weighted, V normed) const {
    const V rest = hn::NegMulAdd(normed, hn::Set(d, along), hn::Sub(weighted, hn::Set(d, shift)));
    return hn::Mul(rest, hn::Set(d, scale));
  }
};

void add_products(const float* a, const float* b, float* sums, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, sums + i)), d,
               sums + i);
  for (; i < n; ++i) sums[i] += a[i] * b[i];
}

// normed and weighted: scratch of n elements.
void NormGradientRow(const NormGradient& norm, double mean, double scale, const float* x,
                     const float* g, float* normed, float* weighted, float* x_gradient,
                     float* weight_sums, float* bias_sums) {
  const D d;
  const size_t n = norm.n;
  row_normalise(x, mean, scale, normed, n);
  if (norm.weight) map(d, d, g, norm.weight, weighted, n, Times());
  if (weight_sums) add_products(g, normed, weight_sums, n);
  if (bias_sums) map(d, d, g, bias_sums, bias_sums, n, Plus());
  const float* const slopes = norm.weight ? weighted : g;
  const double count = static_cast<double>(n);
  const double shift = norm.centred ? row_sum(slopes, n) / count : 0;
  map(d, d, slopes, normed, x_gradient, n,
      Slope{static_cast<float>(scale), static_cast<float>(shift),
            static_cast<float>(row_dot(slopes, normed, n) / count)});
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(NormGradientRow);

void norm_gradient(const NormGradient& norm, const float* x, const float* g, size_t rows,
                   float* x_gradient, float* weight_sums, float* bias_sums) {
  const size_t n = norm.n;
  std::vector<float> scratch(2 * n);
  for (size_t row = 0; row < rows; ++row, x += n, g += n, x_gradient += n) {
    double mean = 0, squares = 0;
    if (norm.centred) {
      const Moments moments = row_moments(x, n);
      mean = moments.mean;
      squares = moments.variance;
    } else {
      squares = row_dot(x, x, n) / static_cast<double>(n);
    }
    HWY_DYNAMIC_DISPATCH(NormGradientRow)
    (norm, mean, 1 / std::sqrt(squares + norm.epsilon), x, g, scratch.data(), scratch.data() + n,
     x_gradient, weight_sums, bias_sums);
  }
}

}  // namespace prism::cpu
#endif
