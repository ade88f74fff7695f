// Convolutions on the CPU: im2col followed by a matrix product, one image at a time.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "cpu/elementwise.h"
#include "cpu/products/matmul.h"
#include "ops/conv/conv_op.h"

namespace prism {

namespace {

using Sizes = ConvOp::Sizes;

// Calls visit(tap_row, window, place) for the elements of one tap in all windows, where they are
// inside the plane.
template <class Visit>
void for_tap(const ops::Windows& w, int64_t tap, const Visit& visit) {
  const int64_t v = tap / w.window_x, u = tap % w.window_x;
  for (int64_t y = 0; y < w.out_y; ++y) {
    const int64_t row = y * w.stride_y + v * w.dilation_y - w.padding_y;
    if (row < 0 || row >= w.height) continue;
    for (int64_t x = 0; x < w.out_x; ++x) {
      const int64_t column = x * w.stride_x + u * w.dilation_x - w.padding_x;
      if (column >= 0 && column < w.width) visit(y * w.out_x + x, row * w.width + column);
    }
  }
}

// columns[channel * taps + tap][window] = x[channel][place], 0 outside.
template <class T>
void to_columns(const Sizes& sizes, const T* x, T* columns, ThreadPool& pool) {
  const ops::Windows& w = sizes.windows;
  const int64_t outputs = w.outputs(), taps = w.taps();
  pool.parallel_for(
      static_cast<uint64_t>(sizes.group_channels() * taps), 1, [&](uint64_t first, uint64_t last) {
        for (auto k = static_cast<int64_t>(first); k < static_cast<int64_t>(last); ++k) {
          T* const to = columns + k * outputs;
          const T* const from = x + k / taps * w.plane();
          std::fill(to, to + outputs, T{0});
          for_tap(w, k % taps, [&](int64_t window, int64_t place) { to[window] = from[place]; });
        }
      });
}

// The reverse (col2im): x[channel][place] sums the columns' elements for it.
template <class T>
void from_columns(const Sizes& sizes, const T* columns, T* x, ThreadPool& pool) {
  const ops::Windows& w = sizes.windows;
  const int64_t outputs = w.outputs(), taps = w.taps();
  pool.parallel_for(
      static_cast<uint64_t>(sizes.group_channels()), 1, [&](uint64_t first, uint64_t last) {
        for (auto c = static_cast<int64_t>(first); c < static_cast<int64_t>(last); ++c) {
          T* const to = x + c * w.plane();
          std::fill(to, to + w.plane(), T{0});
          for (int64_t tap = 0; tap < taps; ++tap) {
            const T* const from = columns + (c * taps + tap) * outputs;
            for_tap(w, tap, [&](int64_t window, int64_t place) { to[place] += from[window]; });
          }
        }
      });
}

template <class T>
void product(ThreadPool& pool, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
             bool transpose_a, const T* b, int64_t ldb, bool transpose_b, T* c, T beta) {
  const auto size = [](int64_t value) { return static_cast<size_t>(value); };
  if constexpr (std::is_same_v<T, float>)
    cpu::matmul_f32(pool, size(m), size(n), size(k), a, size(lda), transpose_a, b, size(ldb),
                    transpose_b, c, size(n), beta);
  else
    cpu::matmul_f64(pool, size(m), size(n), size(k), a, size(lda), transpose_a, b, size(ldb),
                    transpose_b, c, size(n), beta);
}

template <class T>
void convolve(ConvOp::Kind kind, const Sizes& sizes, const T* a, const T* b, T* y,
              ThreadPool& pool) {
  using Kind = ConvOp::Kind;
  const ops::Windows& w = sizes.windows;
  const int64_t filters = sizes.group_filters(), outputs = w.outputs();
  const int64_t terms = sizes.group_channels() * w.taps();
  std::vector<T> columns(static_cast<size_t>(terms * outputs));
  for (int64_t image = 0; image < sizes.batch; ++image) {
    for (int64_t group = 0; group < sizes.groups; ++group) {
      const int64_t x_at = (image * sizes.channels + group * sizes.group_channels()) * w.plane();
      const int64_t y_at = (image * sizes.filters + group * filters) * outputs;
      const int64_t weight_at = group * filters * terms;
      switch (kind) {
        case Kind::forward:
          to_columns(sizes, a + x_at, columns.data(), pool);
          product<T>(pool, filters, outputs, terms, b + weight_at, terms, false, columns.data(),
                     outputs, false, y + y_at, 0);
          break;
        case Kind::input_gradient:
          product<T>(pool, terms, outputs, filters, b + weight_at, terms, true, a + y_at, outputs,
                     false, columns.data(), 0);
          from_columns(sizes, columns.data(), y + x_at, pool);
          break;
        case Kind::weight_gradient:
          to_columns(sizes, a + x_at, columns.data(), pool);
          product<T>(pool, filters, terms, outputs, b + y_at, outputs, false, columns.data(),
                     outputs, true, y + weight_at, image > 0 ? 1 : 0);
          break;
      }
    }
  }
}

}  // namespace

void ConvOp::run_cpu(const CpuCall& call) const {
  const HostView &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  const DType type = y.type.plain();
  const auto count = static_cast<size_t>(y.layout.shape.elements());
  if (count == 0) return;
  if (a.layout.shape.elements() == 0 || b.layout.shape.elements() == 0) {  // empty sums
    std::fill(y.data, y.data + count * y.type.block_bytes(), std::byte{0});
    return;
  }
  if (type == DType::f64)
    return convolve(kind_, sizes_, a.first<double>(), b.first<double>(), y.first<double>(),
                    call.pool);
  if (type == DType::f32)
    return convolve(kind_, sizes_, a.first<float>(), b.first<float>(), y.first<float>(), call.pool);
  std::vector<float> wide[2], result(count);
  for (size_t i = 0; i < 2; ++i) {
    const HostView& each = call.inputs[i];
    wide[i].resize(static_cast<size_t>(each.layout.shape.elements()));
    cpu::load(type, each.first<uint16_t>(), 1, DType::f32, wide[i].data(), wide[i].size());
  }
  convolve(kind_, sizes_, wide[0].data(), wide[1].data(), result.data(), call.pool);
  cpu::store(DType::f32, result.data(), type, y.data, count);
}

}  // namespace prism
