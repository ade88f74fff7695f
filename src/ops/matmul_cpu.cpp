// Matrix products on the CPU: dense ones by packed panels, quantised ones on integer dot products.
#include <vector>

#include "base/error.h"
#include "cpu/elementwise.h"
#include "cpu/matmul.h"
#include "cpu/quantised_product.h"
#include "ops/matmul_op.h"

namespace prism {

namespace {

size_t size(int64_t value) { return static_cast<size_t>(value); }

// The address of matrix z of a batch.
const void* matrix_at(const HostView& view, const MatrixLayout& matrix, int64_t z) {
  const int64_t element = view.layout.offset + z * matrix.batch_step;
  return view.data + element / view.type.block_elements() * view.type.block_bytes();
}

// Rows of a as f32, close together.
std::vector<float> rows_as_f32(const HostView& view, const MatrixLayout& matrix, const void* from,
                               int64_t m, int64_t k) {
  std::vector<float> rows(size(m * k));
  const DType type = view.type.plain();
  const auto bytes = static_cast<int64_t>(view.type.block_bytes());
  for (int64_t i = 0; i < m; ++i) {
    const int64_t start = matrix.transposed ? i : i * matrix.step;
    cpu::load(type, static_cast<const std::byte*>(from) + start * bytes,
              matrix.transposed ? matrix.step : 1, DType::f32, rows.data() + i * k, size(k));
  }
  return rows;
}

}  // namespace

void MatmulOp::run_cpu(const CpuCall& call) const {
  const HostView &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
  const int64_t m = a.layout.shape[-2], k = a.layout.shape[-1], n = b.layout.shape[-1];
  const int64_t batch = a.layout.shape.rank() == 3 ? a.layout.shape[0] : 1;
  if (m == 0 || n == 0 || batch == 0) return;
  const MatrixLayout in_a = matrix_layout(a.layout).value();
  const DType c_type = c.type.plain();
  const auto c_bytes = static_cast<int64_t>(c.type.block_bytes());
  std::vector<float> sums(c_type == DType::f32 || c_type == DType::f64 ? 0 : size(m * n));

  for (int64_t z = 0; z < batch; ++z) {
    std::byte* const to = c.data + (c.layout.offset + z * m * n) * c_bytes;
    float* const y = sums.empty() ? reinterpret_cast<float*>(to) : sums.data();
    const void* const from_a = matrix_at(a, in_a, z);
    if (b.type.is_block()) {
      const MatrixLayout whole{true, k, 1, 0};
      const void* const weights = matrix_at(b, whole, 0);
      const bool ready = a.type == ElementType(DType::f32) && !in_a.transposed;
      const std::vector<float> x =
          ready ? std::vector<float>() : rows_as_f32(a, in_a, from_a, m, k);
      cpu::quantised_product(
          call.pool, b.type.block(), weights, static_cast<uint64_t>(n), static_cast<uint64_t>(k),
          ready ? static_cast<const float*>(from_a) : x.data(), static_cast<uint64_t>(m),
          static_cast<uint64_t>(ready ? in_a.step : k), y, static_cast<uint64_t>(n));
    } else {
      const MatrixLayout in_b = matrix_layout(b.layout).value();
      const void* const from_b = matrix_at(b, in_b, z);
      if (c_type == DType::f64) {
        // The other side may be of a narrower type.
        const auto widened_f64 = [](const HostView& view, const void* from, int64_t elements) {
          std::vector<double> wide(size(elements));
          cpu::load(view.type.plain(), from, 1, DType::f64, wide.data(), wide.size());
          return wide;
        };
        const int64_t a_reach = (in_a.transposed ? k : m) * in_a.step;
        const int64_t b_reach = (in_b.transposed ? n : k) * in_b.step;
        std::vector<double> wide_a, wide_b;
        if (a.type != ElementType(DType::f64)) wide_a = widened_f64(a, from_a, a_reach);
        if (b.type != ElementType(DType::f64)) wide_b = widened_f64(b, from_b, b_reach);
        cpu::matmul_f64(call.pool, size(m), size(n), size(k),
                        wide_a.empty() ? static_cast<const double*>(from_a) : wide_a.data(),
                        size(in_a.step), in_a.transposed,
                        wide_b.empty() ? static_cast<const double*>(from_b) : wide_b.data(),
                        size(in_b.step), in_b.transposed, reinterpret_cast<double*>(to), size(n));
        continue;
      }
      cpu::matmul(call.pool, size(m), size(n), size(k), a.type.plain(), from_a, size(in_a.step),
                  in_a.transposed, b.type.plain(), from_b, size(in_b.step), in_b.transposed, y,
                  size(n));
    }
    if (!sums.empty()) cpu::store(DType::f32, sums.data(), c_type, to, sums.size());
  }
}

}  // namespace prism
