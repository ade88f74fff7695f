// Vectorises recurrences over the columns of the state: no sum crosses lanes.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include <algorithm>
#include <vector>

#include "cpu/state_scan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/state_scan.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vector_math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

// Scans kCount vectors of columns from `column` on.
template <ScanRule kRule, ScanDecay kDecay, size_t kCount, class D>
void ScanColumns(D d, const StateScan& s, size_t column) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  // The decay of a key, of which those of a head and of elements are known before.
  const auto decay_of = [&](const float* decays, size_t key) {
    return hn::Set(d, decays[kDecay == ScanDecay::key ? key : 0]);
  };
  for (size_t row = 0; row < s.rows; ++row) {
    const float* const q = s.q + row * s.q_stride;
    const float* const k = s.k + row * s.k_stride;
    const float* const decays = s.decay + row * s.decay_stride;
    const float* const extra =
        kDecay == ScanDecay::element ? s.extra : s.extra + row * s.extra_stride;
    V v[kCount], y[kCount], moved[kCount], steps[kCount];
    for (size_t i = 0; i < kCount; ++i) {
      v[i] = hn::LoadU(d, s.v + row * s.v_stride + column + i * lanes);
      y[i] = moved[i] = steps[i] = hn::Zero(d);
      if constexpr (kDecay == ScanDecay::element) {
        steps[i] = hn::LoadU(d, decays + column + i * lanes);
        v[i] = hn::Mul(v[i], steps[i]);
      } else if (s.gains) {
        v[i] = hn::Mul(v[i], hn::Set(d, s.gains[row * s.gain_stride]));
      }
    }
    float* const state = s.state + column;
    if constexpr (kRule == ScanRule::delta || kRule == ScanRule::moving) {
      const float* const from = kRule == ScanRule::delta ? k : extra;
      for (size_t key = 0; key < s.keys; ++key) {
        V by = hn::Set(d, from[key]);
        if constexpr (kRule == ScanRule::delta) by = hn::Mul(by, decay_of(decays, key));
        for (size_t i = 0; i < kCount; ++i)
          moved[i] =
              hn::MulAdd(by, hn::LoadU(d, state + key * s.state_stride + i * lanes), moved[i]);
      }
      if constexpr (kRule == ScanRule::delta)
        for (size_t i = 0; i < kCount; ++i)
          v[i] = hn::Mul(hn::Set(d, extra[0]), hn::Sub(v[i], moved[i]));
    }
    for (size_t key = 0; key < s.keys; ++key) {
      float* const at = state + key * s.state_stride;
      const V by_q = hn::Set(d, q[key]), by_k = hn::Set(d, k[key]);
      V decay = hn::Zero(d), to = hn::Zero(d);
      if constexpr (kDecay != ScanDecay::element) decay = decay_of(decays, key);
      if constexpr (kRule == ScanRule::moving)
        to = hn::Set(d, extra[key] * s.rates[row * s.rates_stride + key]);
      for (size_t i = 0; i < kCount; ++i) {
        const V old = hn::LoadU(d, at + i * lanes);
        if constexpr (kDecay == ScanDecay::element) {
          const V rate = hn::LoadU(d, extra + key * s.extra_stride + column + i * lanes);
          decay = exp_f32(d, hn::Mul(steps[i], rate));
        }
        V now = hn::MulAdd(old, decay, hn::Mul(by_k, v[i]));
        if constexpr (kRule == ScanRule::moving) now = hn::NegMulAdd(to, moved[i], now);
        hn::StoreU(now, d, at + i * lanes);
        y[i] = hn::MulAdd(by_q, kRule == ScanRule::sums_before ? old : now, y[i]);
      }
    }
    for (size_t i = 0; i < kCount; ++i)
      hn::StoreU(y[i], d, s.y + row * s.y_stride + column + i * lanes);
  }
}

template <ScanRule kRule, ScanDecay kDecay>
void ScanAll(const StateScan& s) {
  const hn::ScalableTag<float> d;
  constexpr size_t kMany = 4;  // enough sums at once to hide the latency of a multiply-add
  const size_t lanes = hn::Lanes(d);
  size_t column = 0;
  for (; column + kMany * lanes <= s.columns; column += kMany * lanes)
    ScanColumns<kRule, kDecay, kMany>(d, s, column);
  for (; column + lanes <= s.columns; column += lanes) ScanColumns<kRule, kDecay, 1>(d, s, column);
  for (; column < s.columns; ++column)
    ScanColumns<kRule, kDecay, 1>(hn::CappedTag<float, 1>(), s, column);
}

template <ScanRule kRule>
void ScanByDecay(const StateScan& s) {
  if (s.decay_kind == ScanDecay::head) return ScanAll<kRule, ScanDecay::head>(s);
  ScanAll<kRule, ScanDecay::key>(s);
}

void Scan(const StateScan& s) {
  if (s.decay_kind == ScanDecay::element) return ScanAll<ScanRule::sums, ScanDecay::element>(s);
  switch (s.rule) {
    case ScanRule::sums:
      return ScanByDecay<ScanRule::sums>(s);
    case ScanRule::sums_before:
      return ScanByDecay<ScanRule::sums_before>(s);
    case ScanRule::delta:
      return ScanByDecay<ScanRule::delta>(s);
    case ScanRule::moving:
      return ScanByDecay<ScanRule::moving>(s);
  }
}

template <class D>
void ConvChannels(D d, const ShortConv& c, const float* weight, size_t channel) {
  using V = hn::Vec<D>;
  const V bias = c.bias ? hn::LoadU(d, c.bias + channel) : hn::Zero(d);
  const size_t before = c.taps - 1;
  for (size_t row = 0; row < c.rows; ++row) {
    V sum = bias;
    for (size_t tap = 0; tap < c.taps; ++tap) {
      const size_t at = row + tap;  // counted from the first row of the state
      const float* const from =
          at < before ? c.state + at * c.stride : c.x + (at - before) * c.x_stride;
      sum = hn::MulAdd(hn::LoadU(d, weight + tap * c.channels + channel),
                       hn::LoadU(d, from + channel), sum);
    }
    if (c.silu) sum = hn::Mul(sum, sigmoid_f32(d, sum));
    hn::StoreU(sum, d, c.y + row * c.stride + channel);
  }
}

void Conv(const ShortConv& c, const float* weight) {
  const hn::ScalableTag<float> d;
  size_t channel = 0;
  for (; channel + hn::Lanes(d) <= c.channels; channel += hn::Lanes(d))
    ConvChannels(d, c, weight, channel);
  for (; channel < c.channels; ++channel)
    ConvChannels(hn::CappedTag<float, 1>(), c, weight, channel);
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(Scan);
HWY_EXPORT(Conv);

void state_scan(const StateScan& scan) { HWY_DYNAMIC_DISPATCH(Scan)(scan); }

void short_conv(const ShortConv& conv) {
  std::vector<float> by_tap(conv.taps * conv.channels);
  for (size_t channel = 0; channel < conv.channels; ++channel)
    for (size_t tap = 0; tap < conv.taps; ++tap)
      by_tap[tap * conv.channels + channel] = conv.weight[channel * conv.taps + tap];
  HWY_DYNAMIC_DISPATCH(Conv)(conv, by_tap.data());
  if (!conv.changes_state) return;
  // The last rows are the next state. Those that remain of the old one move up.
  const size_t before = conv.taps - 1;
  for (size_t i = 0; i < before; ++i) {
    const size_t at = conv.rows + i;
    const float* const from =
        at < before ? conv.state + at * conv.stride : conv.x + (at - before) * conv.x_stride;
    std::copy_n(from, conv.channels, conv.state + i * conv.stride);
  }
}

}  // namespace prism::cpu
#endif
