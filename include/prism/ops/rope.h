// Rotary embedding: rotates pairs of a head's elements by angles that grow with the position.
#pragma once

#include <string>

#include "prism/rope_scaling.h"
#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

struct RopeOptions {
  int64_t dims = 0;  // rotated elements per head, even; 0: all. Others are unchanged
  RopePairing pairing = RopePairing::halves;
  double magnitude = 1;  // multiplies the rotated elements
};

// A readable summary: "64 dims, halves".
std::string rope_text(const RopeOptions& options, bool rotates = true);

// x [rows..., heads, head_dims] of a float type; positions i32 [rows...] in device memory, so one
// plan serves all positions; frequencies f32 [dims / 2] in radians per position for each pair
// (prism/rope_scaling.h computes them). The error of angles is at most 3e-7 radians up to position
// one million.
Tensor rope(const Tensor& x, const Tensor& positions, const Tensor& frequencies,
            const RopeOptions& options = {});

}  // namespace prism

#pragma GCC visibility pop
