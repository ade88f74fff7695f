// Ranges, the identity matrix and random numbers; and dropout, which uses random numbers.
//
// Random numbers are Philox 4x32-10 of a key and the element's index. They are the same on every
// device and do not depend on how work is divided. A key always gives the same numbers.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// start, start + step, ... up to but not including stop.
Tensor arange(double start, double stop, double step = 1, DType type = DType::i32,
              const Device& device = {});
inline Tensor arange(int64_t count, DType type = DType::i32, const Device& device = {}) {
  return arange(0, static_cast<double>(count), 1, type, device);
}
// count numbers from first to last, both included.
Tensor linspace(double first, double last, int64_t count, DType type = DType::f32,
                const Device& device = {});
// Ones where row and column are equal, zeros elsewhere. columns -1: as many as rows.
Tensor eye(int64_t rows, int64_t columns = -1, DType type = DType::f32, const Device& device = {});

// [low, high) from 24 random bits. Element i is word i % 4 of the block whose counter is i / 4.
Tensor uniform(const Shape& shape, uint64_t key, double low = 0, double high = 1,
               DType type = DType::f32, const Device& device = {});
// Box-Muller transform of pairs of uniform's words: equal on all devices within 1e-6 * deviation.
Tensor normal(const Shape& shape, uint64_t key, double mean = 0, double deviation = 1,
              DType type = DType::f32, const Device& device = {});
// Sets the seed of rand() and randn(): the key of the n-th draw depends on the seed and n alone, on
// every machine. The initial seed is 0. In a compiled function a draw is a constant of the plan:
// use uniform() or normal() with keys that you choose, or pass the numbers as inputs.
void seed(uint64_t seed);
Tensor rand(const Shape& shape, DType type = DType::f32, const Device& device = {});   // [0, 1)
Tensor randn(const Shape& shape, DType type = DType::f32, const Device& device = {});  // normal

// Zero with probability p, else x / (1 - p). Throws kInvalidArgument unless 0 <= p < 1.
Tensor dropout(const Tensor& x, double p, uint64_t key);
// The same with a key in device memory, i32 [2], so that each run of a plan draws another mask.
// Draws with one key and different streams are independent.
Tensor dropout(const Tensor& x, double p, const Tensor& key, uint64_t stream = 0);

}  // namespace prism

#pragma GCC visibility pop
