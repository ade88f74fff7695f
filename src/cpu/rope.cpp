// Computes sines and cosines once per row, then rotates all heads of the row.
#include "cpu/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "cpu/elementwise.h"

namespace prism::cpu {
namespace {

void turn(const float* cosine, const float* sine, size_t pairs, RopePairing pairing, float* x) {
  if (pairing == RopePairing::halves) {
    float* y = x + pairs;
    for (size_t i = 0; i < pairs; ++i) {
      const float a = x[i], b = y[i];
      x[i] = a * cosine[i] - b * sine[i];
      y[i] = b * cosine[i] + a * sine[i];
    }
    return;
  }
  for (size_t i = 0; i < pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cosine[i] - b * sine[i];
    x[2 * i + 1] = b * cosine[i] + a * sine[i];
  }
}

}  // namespace

RopeAngles::RopeAngles(const Rope& options, const float* frequencies)
    : pairing_(options.pairing),
      magnitude_(options.magnitude),
      sign_(options.backward ? -options.magnitude : options.magnitude),
      frequencies_(frequencies),
      angle_(options.dims / 2),
      cosine_(options.dims / 2),
      sine_(options.dims / 2) {}

void RopeAngles::set(int32_t position) {
  const size_t pairs = angle_.size();
  // Reduce to half a turn before rounding to f32: the error of the angle is that of the result.
  for (size_t i = 0; i < pairs; ++i) {
    constexpr double kTurn = 2 * std::numbers::pi;
    const double full = static_cast<double>(position) * static_cast<double>(frequencies_[i]);
    angle_[i] = static_cast<float>(full - kTurn * std::nearbyint(full / kTurn));
  }
  apply(ScalarOp::cos, DType::f32, angle_.data(), nullptr, nullptr, cosine_.data(), pairs);
  apply(ScalarOp::sin, DType::f32, angle_.data(), nullptr, nullptr, sine_.data(), pairs);
  for (size_t i = 0; i < pairs; ++i) {
    cosine_[i] *= magnitude_;
    sine_[i] *= sign_;
  }
}

void RopeAngles::turn(float* first_head, size_t heads, size_t head_stride) const {
  for (size_t head = 0; head < heads; ++head)
    prism::cpu::turn(cosine_.data(), sine_.data(), angle_.size(), pairing_,
                     first_head + head * head_stride);
}

void rope(ThreadPool& pool, const Rope& options, const int32_t* positions, const float* frequencies,
          float* x) {
  const size_t pairs = options.dims / 2;
  if (pairs == 0 || options.heads == 0) return;
  // Enough rows for about 10 microseconds.
  const size_t chunk = std::max<size_t>(1, 16384 / (options.heads * pairs));
  pool.parallel_for(options.rows, chunk, [&](uint64_t first, uint64_t last) {
    RopeAngles angles(options, frequencies);
    for (uint64_t row = first; row < last; ++row) {
      angles.set(positions[row]);
      angles.turn(x + row * options.row_stride, options.heads, options.head_stride);
    }
  });
}

}  // namespace prism::cpu
