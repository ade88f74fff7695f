// Rotary embedding: pairs of a head's elements turned by angles that grow with the position.
#pragma once

#include <string>

#include "prism/rope_scaling.h"
#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

struct RopeOptions {
  int64_t dims = 0;  // rotated elements of a head, even; 0: all. The rest stays as it is
  RopePairing pairing = RopePairing::halves;
  double magnitude = 1;  // multiplies the rotated elements
};

// For people: "64 dims, halves".
std::string rope_text(const RopeOptions& options, bool rotates = true);

// x [rows..., heads, head_dims] of a float type; positions i32 [rows...], device data, so that a
// plan serves every position; frequencies f32 [dims / 2], radians a position for each pair
// (prism/rope_scaling.h makes them). Angles are exact to 3e-7 of a radian for positions to a
// million.
Tensor rope(const Tensor& x, const Tensor& positions, const Tensor& frequencies,
            const RopeOptions& options = {});

}  // namespace prism

#pragma GCC visibility pop
