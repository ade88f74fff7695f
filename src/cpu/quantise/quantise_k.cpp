// Encodes the types with 256 elements per block: sub-blocks with small integer scales of their own.
//
// Each sub-block is searched by itself, and the common factors follow from the largest scale and
// min. Then scales and mins are chosen again around their rounded values, and the factors refitted
// for all codes by weighted least squares, as long as that reduces the error.
#include "cpu/quantise/quantise_blocks.h"
#include "cpu/quantise/quantise_search.h"

namespace prism::cpu {

namespace {

constexpr uint32_t kElements = 256;
constexpr int kRounds = 3;  // refits; a third rarely changes anything

// --- x = (d * scale) * q - (dmin * min): N elements per sub-block, q up to Q, scale and min up to
// S

template <int N, int Q, int S>
struct MinBlock {
  static constexpr int kCount = kElements / N;
  float d = 0, dmin = 0;
  uint8_t scale[kCount] = {}, min[kCount] = {};
  float error = kWorst;

  OffsetFit fit(const float* x, const float* w, int j, int scale_j, int min_j) const {
    return fit_offset<N>(x + N * j, w + N * j, d * static_cast<float>(scale_j),
                         -(dmin * static_cast<float>(min_j)), Q);
  }

  void measure(const float* x, const float* w) {
    error = 0;
    for (int j = 0; j < kCount; ++j) error += fit(x, w, j, scale[j], min[j]).error;
  }

  // Sets the factors that reach the largest given scales, and rounds the given ones.
  void round(const ScaleOffset* from, const float* x, const float* w) {
    float most_scale = 0, most_min = 0;
    for (int j = 0; j < kCount; ++j) {
      most_scale = std::max(most_scale, from[j].d);
      most_min = std::max(most_min, -from[j].m);
    }
    d = as_half(most_scale / S);
    dmin = as_half(most_min / S);
    for (int j = 0; j < kCount; ++j) {
      scale[j] = static_cast<uint8_t>(d == 0 ? 0.0f : code_of(from[j].d / d, 0, S));
      min[j] = static_cast<uint8_t>(dmin == 0 ? 0.0f : code_of(-from[j].m / dmin, 0, S));
    }
    measure(x, w);
  }

  // Sets each scale and min to the best of itself and its neighbours.
  void improve(const float* x, const float* w) {
    error = 0;
    for (int j = 0; j < kCount; ++j) {
      float least = kWorst;
      const int scale_was = scale[j], min_was = min[j];
      for (int s = std::max(scale_was - 1, 0); s <= std::min(scale_was + 1, S); ++s)
        for (int m = std::max(min_was - 1, 0); m <= std::min(min_was + 1, S); ++m) {
          const float found = fit(x, w, j, s, m).error;
          if (found >= least) continue;
          least = found;
          scale[j] = static_cast<uint8_t>(s);
          min[j] = static_cast<uint8_t>(m);
        }
      error += least;
    }
  }

  // The best d and dmin for the current codes.
  void refit_factors(const float* x, const float* w) {
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;  // for a = scale * q and b = -min
    for (int j = 0; j < kCount; ++j) {
      const OffsetFit f = fit(x, w, j, scale[j], min[j]);
      const double s = scale[j], m = -static_cast<double>(min[j]);
      aa += s * s * f.qq;
      ab += s * m * f.q;
      bb += m * m * f.w;
      xa += s * f.xq;
      xb += m * f.x;
    }
    const double determinant = aa * bb - ab * ab;
    double new_d = aa > 0 ? xa / aa : 0, new_dmin = 0;
    if (determinant > 1e-9 * aa * bb) {
      const double both = (xa * bb - xb * ab) / determinant,
                   min_of = (xb * aa - xa * ab) / determinant;
      if (both >= 0 && min_of >= 0) new_d = both, new_dmin = min_of;
    } else if (aa == 0 && bb > 0) {
      new_dmin = std::max(xb / bb, 0.0);
    }
    d = as_half(static_cast<float>(std::max(new_d, 0.0)));
    dmin = as_half(static_cast<float>(new_dmin));
    measure(x, w);
  }

  static MinBlock search(const float* x, const float* w) {
    ScaleOffset plain[kCount], found[kCount];
    for (int j = 0; j < kCount; ++j) {
      const Range range = range_of<N>(x + N * j, 0.0f);
      plain[j] = {(range.high - range.low) / Q, range.low};
      found[j] = search_offset<N>(x + N * j, w + N * j, Q, 0.0f, as_is);
    }
    MinBlock best, trial;
    best.round(plain, x, w);
    trial.round(found, x, w);
    for (int i = 0; i < kRounds; ++i) {
      trial.improve(x, w);
      if (trial.error >= best.error) break;
      best = trial;
      trial.refit_factors(x, w);
    }
    if (trial.error < best.error) best = trial;
    return best;
  }

  void codes(const float* x, uint8_t* q) const {
    for (uint32_t e = 0; e < kElements; ++e) {
      const float step = d * static_cast<float>(scale[e / N]);
      const float low = -(dmin * static_cast<float>(min[e / N]));
      q[e] = static_cast<uint8_t>(step == 0 ? 0.0f : code_of((x[e] - low) * (1.0f / step), 0, Q));
    }
  }
};

// --- x = (d * scale) * q: 16 elements per sub-block, q from -Q to Q - 1, scale from -S to S - 1

template <int Q, int S>
struct SignedBlock {
  static constexpr int N = 16, kCount = kElements / N;
  float d = 0;
  int scale[kCount] = {};
  float error = kWorst;

  ScaleFit fit(const float* x, const float* w, int j, int scale_j) const {
    return fit_scale<N>(x + N * j, w + N * j, d * static_cast<float>(scale_j), -Q, Q - 1);
  }

  void measure(const float* x, const float* w) {
    error = 0;
    for (int j = 0; j < kCount; ++j) error += fit(x, w, j, scale[j]).error;
  }

  // Rounds the given scales to multiples of a given factor.
  void round(const float* from, float factor, const float* x, const float* w) {
    d = as_half(factor);
    for (int j = 0; j < kCount; ++j)
      scale[j] = d == 0 ? 0 : static_cast<int>(code_of(from[j] / d, -S, S - 1));
    measure(x, w);
  }

  void improve(const float* x, const float* w) {
    error = 0;
    for (int j = 0; j < kCount; ++j) {
      float least = kWorst;
      const int was = scale[j];
      for (int s = std::max(was - 1, -S); s <= std::min(was + 1, S - 1); ++s) {
        const float found = fit(x, w, j, s).error;
        if (found >= least) continue;
        least = found;
        scale[j] = s;
      }
      error += least;
    }
  }

  void refit_factor(const float* x, const float* w) {
    double aa = 0, xa = 0;  // for a = scale * q
    for (int j = 0; j < kCount; ++j) {
      const ScaleFit f = fit(x, w, j, scale[j]);
      aa += static_cast<double>(scale[j]) * scale[j] * f.qq;
      xa += static_cast<double>(scale[j]) * f.xq;
    }
    d = as_half(static_cast<float>(aa > 0 ? xa / aa : 0));
    measure(x, w);
  }

  static SignedBlock search(const float* x, const float* w) {
    float plain[kCount], found[kCount];
    for (int j = 0; j < kCount; ++j) {
      plain[j] = std::abs(extreme_of<N>(x + N * j)) / (Q - 1);
      found[j] = search_scale<N>(x + N * j, w + N * j, -Q, Q - 1, as_is);
    }
    SignedBlock best;
    best.round(plain, extreme_of<kCount>(plain) / (S - 1), x, w);
    // Map the largest scale to either end of the range, and keep the better start.
    const float largest = extreme_of<kCount>(found);
    SignedBlock trial, other;
    trial.round(found, largest / -S, x, w);
    other.round(found, largest / (S - 1), x, w);
    if (other.error < trial.error) trial = other;
    for (int i = 0; i < kRounds; ++i) {
      trial.improve(x, w);
      if (trial.error >= best.error) break;
      best = trial;
      trial.refit_factor(x, w);
    }
    if (trial.error < best.error) best = trial;
    return best;
  }

  // Codes plus Q, so that they are non-negative.
  void codes(const float* x, uint8_t* q) const {
    for (uint32_t e = 0; e < kElements; ++e) {
      const float step = d * static_cast<float>(scale[e / N]);
      const float code = step == 0 ? 0.0f : code_of(x[e] * (1.0f / step), -Q, Q - 1);
      q[e] = static_cast<uint8_t>(static_cast<int>(code) + Q);
    }
  }
};

// Packs two bits of each code from `shift` on, in the layout of q2_k and its relatives.
void pack_pairs(const uint8_t* q, uint32_t shift, uint8_t* packed) {
  for (uint32_t i = 0; i < 64; ++i) packed[i] = 0;
  for (uint32_t e = 0; e < kElements; ++e) {
    uint8_t& byte = packed[32 * (e / 128) + e % 32];
    byte = static_cast<uint8_t>(byte | (q[e] >> shift & 3) << (2 * (e / 32 % 4)));
  }
}

void pack_bits(const uint8_t* q, uint32_t bit, uint8_t* packed) {
  for (uint32_t i = 0; i < 32; ++i) packed[i] = 0;
  for (uint32_t e = 0; e < kElements; ++e)
    packed[e % 32] = static_cast<uint8_t>(packed[e % 32] | (q[e] >> bit & 1) << (e / 32));
}

template <class Search, class Block>
void encode_k(const float* x, const float* w, uint8_t* q, Block& block) {
  const Search found = Search::search(x, w);
  found.codes(x, q);
  block.d = f16_from_f32(found.d);
  block.dmin = f16_from_f32(found.dmin);
  ScaleMin pairs[8];
  for (uint32_t i = 0; i < 8; ++i) pairs[i] = {found.scale[i], found.min[i]};
  pack_k_scale_min(pairs, block.scales);
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t e = 64 * (i / 32) + i % 32;
    block.qs[i] = static_cast<uint8_t>((q[e] & 15) | q[e + 32] << 4);
  }
}

}  // namespace

void encode(const float* x, const float* w, BlockQ2_K& block) {
  const auto found = MinBlock<16, 3, 15>::search(x, w);
  uint8_t q[kElements];
  found.codes(x, q);
  pack_pairs(q, 0, block.qs);
  for (uint32_t i = 0; i < 16; ++i)
    block.scales[i] = static_cast<uint8_t>(found.scale[i] | found.min[i] << 4);
  block.d = f16_from_f32(found.d);
  block.dmin = f16_from_f32(found.dmin);
}

void encode(const float* x, const float* w, BlockQ3_K& block) {
  const auto found = SignedBlock<4, 32>::search(x, w);
  uint8_t q[kElements], scales[16];
  found.codes(x, q);
  pack_pairs(q, 0, block.qs);
  pack_bits(q, 2, block.hmask);
  for (uint32_t i = 0; i < 16; ++i) scales[i] = static_cast<uint8_t>(found.scale[i] + 32);
  pack_q3_k_scales(scales, block.scales);
  block.d = f16_from_f32(found.d);
}

void encode(const float* x, const float* w, BlockQ4_K& block) {
  uint8_t q[kElements];
  encode_k<MinBlock<32, 15, 63>>(x, w, q, block);
}

void encode(const float* x, const float* w, BlockQ5_K& block) {
  uint8_t q[kElements];
  encode_k<MinBlock<32, 31, 63>>(x, w, q, block);
  pack_bits(q, 4, block.qh);
}

void encode(const float* x, const float* w, BlockQ6_K& block) {
  const auto found = SignedBlock<32, 128>::search(x, w);
  uint8_t q[kElements];
  found.codes(x, q);
  pack_pairs(q, 4, block.qh);
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t e = 128 * (i / 64) + i % 64;
    block.ql[i] = static_cast<uint8_t>((q[e] & 15) | q[e + 64] << 4);
  }
  for (uint32_t i = 0; i < 16; ++i) block.scales[i] = static_cast<int8_t>(found.scale[i]);
  block.d = f16_from_f32(found.d);
}

}  // namespace prism::cpu
