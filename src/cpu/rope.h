// In-place rotary embedding: rotates pairs of a head's elements by angles proportional to the
// position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/system/thread_pool.h"
#include "prism/rope_scaling.h"

namespace prism::cpu {

struct Rope {
  size_t rows = 0, heads = 0;
  size_t row_stride = 0, head_stride = 0;  // in elements
  size_t dims = 0;  // rotated elements, even; the rest of a head is unchanged
  RopePairing pairing = RopePairing::halves;
  float magnitude = 1;    // multiplies the rotated elements
  bool backward = false;  // rotates backwards: the gradient of the rotation
};

// Sines and cosines of one position at a time, shared by all heads at that position.
class RopeAngles {
 public:
  // frequencies: radians per position for each of dims / 2 pairs. Uses the options' dims, pairing,
  // magnitude and backward.
  RopeAngles(const Rope& options, const float* frequencies);
  void set(int32_t position);
  void turn(float* first_head, size_t heads, size_t head_stride) const;

 private:
  RopePairing pairing_;
  float magnitude_, sign_;
  const float* frequencies_;
  std::vector<float> angle_, cosine_, sine_;
};

// positions: one per row. frequencies: radians per position for each of dims / 2 pairs
// (prism/rope_scaling.h). Angles are computed in f64.
void rope(ThreadPool& pool, const Rope& options, const int32_t* positions, const float* frequencies,
          float* x);

}  // namespace prism::cpu
