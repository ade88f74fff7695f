// Tiled copies of transposed inputs, so that both reads and writes are contiguous.
#pragma once

#include <optional>

#include "base/system/thread_pool.h"
#include "prism/shape.h"
#include "tensor/plan/device_call.h"

namespace prism {

// A copy to a dense tensor as a batch of matrix transposes: element (a, b) is read at a + b *
// from_step and written at a * to_step + b. Up to three outer axes index the matrices.
struct TransposedCopy {
  static constexpr int kOuter = 3;
  int64_t a = 1, b = 1;
  int64_t from_step = 0, to_step = 0;
  int64_t outer[kOuter] = {1, 1, 1}, from_outer[kOuter] = {}, to_outer[kOuter] = {};
  int64_t from_offset = 0;
};

// Returns nullopt if the input is contiguous along the innermost axis or along no axis, or if the
// matrices are too thin for tiles.
std::optional<TransposedCopy> as_transposed(const Layout& from);

void transpose_cpu(const TransposedCopy& copy, const std::byte* from, std::byte* to,
                   uint32_t element_bytes, ThreadPool& pool);
void launch_transpose(DeviceCall& call, const TransposedCopy& copy, const DeviceView& from,
                      const DeviceView& to);

}  // namespace prism
