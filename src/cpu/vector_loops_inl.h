// Loops over arrays in whole vectors with a padded last one, for files compiled once per
// instruction set.

#if defined(PRISM_CPU_VECTOR_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PRISM_CPU_VECTOR_LOOPS_INL_H
#undef PRISM_CPU_VECTOR_LOOPS_INL_H
#else
#define PRISM_CPU_VECTOR_LOOPS_INL_H
#endif

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads fewer elements than a vector through memory; the remaining lanes are 0.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from, size_t count) {
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(lanes, from, count * sizeof(T));
  return hn::Load(d, lanes);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_some(hn::Vec<D> v, D d, T* to, size_t count) {
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lanes);
  std::memcpy(to, lanes, count * sizeof(T));
}

HWY_INLINE float largest_lane(hn::ScalableTag<float> d, hn::Vec<hn::ScalableTag<float>> v) {
#if HWY_TARGET == HWY_EMU128
  // Highway's portable reduction starts from the lowest finite number, not -infinity.
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  float largest = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
#else
  return hn::GetLane(hn::MaxOfLanes(d, v));
#endif
}

// f is an object whose call operator is compiled for the instruction set (a struct in the file, not
// a lambda). din and dout have equally many lanes.
template <class DIn, class DOut, class F>
HWY_INLINE void map(DIn din, DOut dout, const hn::TFromD<DIn>* a, hn::TFromD<DOut>* out, size_t n,
                    F f) {
  const size_t lanes = hn::Lanes(din);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(din, hn::LoadU(din, a + i)), dout, out + i);
  if (i < n) store_some(f(din, load_some(din, a + i, n - i)), dout, out + i, n - i);
}

template <class DIn, class DOut, class F>
HWY_INLINE void map(DIn din, DOut dout, const hn::TFromD<DIn>* a, const hn::TFromD<DIn>* b,
                    hn::TFromD<DOut>* out, size_t n, F f) {
  const size_t lanes = hn::Lanes(din);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(f(din, hn::LoadU(din, a + i), hn::LoadU(din, b + i)), dout, out + i);
  if (i < n)
    store_some(f(din, load_some(din, a + i, n - i), load_some(din, b + i, n - i)), dout, out + i,
               n - i);
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
