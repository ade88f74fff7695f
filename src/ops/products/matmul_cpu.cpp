// Matrix products on the CPU: packed panels for dense ones, integer dot products for quantised
// ones.
#include <optional>
#include <utility>
#include <vector>

#include "cpu/elementwise.h"
#include "cpu/products/matmul.h"
#include "cpu/products/quantised_product.h"
#include "ops/products/matmul_op.h"
#include "prism/error.h"

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

struct Sizes {
  int64_t m, n, k;
};

// y = a times quantised rows b; in_a is the layout of a, unless a was rounded before.
void run_quantised(const CpuCall& call, const Sizes& s, const std::optional<MatrixLayout>& in_a,
                   const void* from_a, float* y) {
  const HostView &a = call.inputs[0], &b = call.inputs[1];
  const MatrixLayout whole{true, s.k, 1, 0};
  const auto m = static_cast<uint64_t>(s.m), n = static_cast<uint64_t>(s.n),
             k = static_cast<uint64_t>(s.k);
  const cpu::QuantisedWeights weights{b.type.block(), matrix_at(b, whole, 0), n, k};
  if (!in_a) {
    const auto x = cpu::ActivationsView::in(const_cast<void*>(from_a), weights.type, m, k);
    return cpu::quantised_product(call.pool, weights, x, y, n);
  }
  const bool ready = a.type == ElementType(DType::f32) && !in_a->transposed;
  const std::vector<float> x =
      ready ? std::vector<float>() : rows_as_f32(a, *in_a, from_a, s.m, s.k);
  cpu::quantised_product(call.pool, weights.type, weights.data, n, k,
                         ready ? static_cast<const float*>(from_a) : x.data(), m,
                         ready ? static_cast<uint64_t>(in_a->step) : k, y, n);
}

// The other side may be of a narrower type.
void run_f64(const CpuCall& call, const Sizes& s, const MatrixLayout& in_a, const void* from_a,
             const MatrixLayout& in_b, const void* from_b, double* y) {
  const auto widened = [](const HostView& view, const void* from, const MatrixLayout& matrix,
                          int64_t rows, int64_t columns) {
    if (matrix.transposed) std::swap(rows, columns);
    std::vector<double> wide(rows == 0 ? 0 : size((rows - 1) * matrix.step + columns));
    cpu::load(view.type.plain(), from, 1, DType::f64, wide.data(), wide.size());
    return wide;
  };
  std::vector<double> wide_a, wide_b;
  if (call.inputs[0].type != ElementType(DType::f64)) {
    wide_a = widened(call.inputs[0], from_a, in_a, s.m, s.k);
    from_a = wide_a.data();
  }
  if (call.inputs[1].type != ElementType(DType::f64)) {
    wide_b = widened(call.inputs[1], from_b, in_b, s.k, s.n);
    from_b = wide_b.data();
  }
  cpu::matmul_f64(call.pool, size(s.m), size(s.n), size(s.k), static_cast<const double*>(from_a),
                  size(in_a.step), in_a.transposed, static_cast<const double*>(from_b),
                  size(in_b.step), in_b.transposed, y, size(s.n));
}

}  // namespace

void MatmulOp::run_cpu(const CpuCall& call) const {
  const HostView &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
  const Sizes s = {a.layout.shape[-2], b.layout.shape[-1], b.layout.shape[-2]};
  const int64_t batch = a.layout.shape.rank() == 3 ? a.layout.shape[0] : 1;
  if (s.m == 0 || s.n == 0 || batch == 0) return;
  const auto in_a = rounded_ ? std::nullopt : matrix_layout(a.layout);
  const DType c_type = c.type.plain();
  const auto c_bytes = static_cast<int64_t>(c.type.block_bytes());
  // Products are f32 (or f64, without a tail); what else comes out goes through memory beside it.
  const bool direct = c_type == DType::f32 || c_type == DType::f64;
  const int64_t each = s.m * s.n;
  std::vector<float> sums(direct ? 0 : size(each * (tail_.empty() ? 1 : batch)));
  // Plain products apply the tail to each tile while it is in the cache.
  const bool by_tiles = c_type == DType::f32 && !tail_.empty() && !b.type.is_block();
  std::optional<TailRows> tail;
  if (by_tiles) tail.emplace(call, tail_, 2, batch * s.m, s.n);

  for (int64_t z = 0; z < batch; ++z) {
    std::byte* const to = c.data + (c.layout.offset + z * each) * c_bytes;
    float* const y =
        direct ? reinterpret_cast<float*>(to) : sums.data() + (tail_.empty() ? 0 : z * each);
    const void* const from_a = matrix_at(a, in_a.value_or(MatrixLayout{}), z);
    if (b.type.is_block()) {
      run_quantised(call, s, in_a, from_a, y);
    } else {
      const MatrixLayout in_b = matrix_layout(b.layout).value();
      const void* const from_b = matrix_at(b, in_b, z);
      if (c_type == DType::f64) {
        run_f64(call, s, *in_a, from_a, in_b, from_b, reinterpret_cast<double*>(to));
      } else {
        const cpu::MatmulDone done = [&](size_t row, size_t rows, size_t column, size_t columns) {
          tail->run_in_place(z * s.m + static_cast<int64_t>(row), static_cast<int64_t>(rows),
                             static_cast<int64_t>(column), static_cast<int64_t>(columns));
        };
        cpu::matmul(call.pool, size(s.m), size(s.n), size(s.k), a.type.plain(), from_a,
                    size(in_a->step), in_a->transposed, b.type.plain(), from_b, size(in_b.step),
                    in_b.transposed, y, size(s.n), 0, by_tiles ? &done : nullptr);
      }
    }
    if (!direct && tail_.empty()) cpu::store(DType::f32, y, c_type, to, size(each));
  }
  if (!tail_.empty() && !by_tiles)
    run_tail(call, tail_, 2, direct ? c.first<float>() : sums.data());
}

}  // namespace prism
