// Copies whose input runs along another axis than the output: by square tiles, so that reading and
// writing both go along memory.
#pragma once

#include <optional>

#include "base/system/thread_pool.h"
#include "prism/shape.h"
#include "tensor/plan/device_call.h"

namespace prism {

// A copy to a dense tensor as a batch of transposed matrices: element (a, b) is read at a + b *
// from_step and written at a * to_step + b. What is left are up to three axes of matrices.
struct TransposedCopy {
  static constexpr int kOuter = 3;
  int64_t a = 1, b = 1;
  int64_t from_step = 0, to_step = 0;
  int64_t outer[kOuter] = {1, 1, 1}, from_outer[kOuter] = {}, to_outer[kOuter] = {};
  int64_t from_offset = 0;
};

// Nothing where the input lies along the innermost axis, or along none, or the matrices are too
// thin for tiles.
std::optional<TransposedCopy> as_transposed(const Layout& from);

void transpose_cpu(const TransposedCopy& copy, const std::byte* from, std::byte* to,
                   uint32_t element_bytes, ThreadPool& pool);
void launch_transpose(DeviceCall& call, const TransposedCopy& copy, const DeviceView& from,
                      const DeviceView& to);

}  // namespace prism
