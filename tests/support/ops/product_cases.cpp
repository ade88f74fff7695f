// Random matrices, reference products and their comparison.
#include "support/ops/product_cases.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/types/block_factors.h"
#include "base/types/gpu_block_layout.h"

namespace prism::testing_support {

using kernels::CaseRandom;

Matrix random_matrix(CaseRandom& random, ElementType type, uint32_t rows, uint32_t k) {
  Matrix matrix{type, rows, k, {}, {}};
  if (!type.is_block()) {
    const std::vector<float> values = random.floats(uint64_t(rows) * k);
    matrix.bytes = kernels::stored(values, type.plain());
    matrix.values = kernels::rounded(values, type.plain());
    return matrix;
  }
  const size_t count = uint64_t(rows) * k / type.block_elements();
  std::vector<uint8_t> blocks = random.octets(count * type.block_bytes());
  for (size_t i = 0; i < count; ++i)
    set_block_factors(type.block(), blocks.data() + i * type.block_bytes(),
                      random.uniform(0.2f, 1.0f) * (random.next() % 8 == 0 ? -1.0f : 1.0f));
  const GpuBlockLayout layout = gpu_block_layout(type.block(), rows, k);
  matrix.bytes.resize(layout.bytes());
  to_gpu_layout(layout, blocks.data(), matrix.bytes.data());
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t c = 0; c < k; ++c)
      matrix.values.push_back(
          static_cast<double>(plane_element(layout, matrix.bytes.data(), r, c)));
  return matrix;
}

Matrix rounded_to_bytes(const Matrix& x) {
  Matrix result{DType::f32, x.rows, x.k, {}, x.values};
  for (size_t start = 0; start < x.values.size(); start += 32) {
    float top = 0;
    for (size_t i = 0; i < 32; ++i)
      top = std::fmax(top, std::fabs(static_cast<float>(x.values[start + i])));
    const float inverse = top > 0x1p-100f ? 127.0f / top : 0.0f;
    const float scale = top * (1.0f / 127.0f);
    for (size_t i = 0; i < 32; ++i) {
      const float scaled = static_cast<float>(x.values[start + i]) * inverse;
      result.values[start + i] = static_cast<double>(scale) * std::nearbyint(scaled);
    }
  }
  return result;
}

Expected product(const Matrix& w, const Matrix& x) {
  Expected result;
  for (uint32_t i = 0; i < x.rows; ++i)
    for (uint32_t r = 0; r < w.rows; ++r) {
      double sum = 0, size = 0;
      for (uint32_t c = 0; c < w.k; ++c) {
        const double term = w.values[uint64_t(r) * w.k + c] * x.values[uint64_t(i) * x.k + c];
        sum += term;
        size += std::fabs(term);
      }
      result.values.push_back(sum);
      result.magnitudes.push_back(size);
    }
  return result;
}

std::string compare_product(const std::vector<std::byte>& got, DType type, const Expected& want,
                            double bound, double nmse) {
  double error = 0, power = 0;
  const double rounding = type == DType::f16 ? 0x1p-11 : type == DType::bf16 ? 0x1p-8 : 0x1p-23;
  for (size_t i = 0; i < want.values.size(); ++i) {
    double value = 0;
    if (type == DType::f32) {
      float stored = 0;
      std::memcpy(&stored, got.data() + i * 4, 4);
      value = static_cast<double>(stored);
    } else {
      uint16_t stored = 0;
      std::memcpy(&stored, got.data() + i * 2, 2);
      value =
          static_cast<double>(type == DType::f16 ? f32_from_f16(stored) : f32_from_bf16(stored));
    }
    const double off = std::fabs(value - want.values[i]);
    const double allowed = bound * want.magnitudes[i] + rounding * std::fabs(want.values[i]) + 1e-7;
    if (!(off <= allowed))
      return fmt::format("result {} of {} is {}, expected {}: off by {:.3g}, allowed {:.3g}", i,
                         want.values.size(), value, want.values[i], off, allowed);
    error += off * off;
    power += want.values[i] * want.values[i];
  }
  // A few results may all be small by chance, which makes the mean meaningless.
  if (want.values.size() >= 32 && !(error <= nmse * power))
    return fmt::format("normalised mean square error {:.3g}, allowed {:.3g}", error / power, nmse);
  return "";
}

std::vector<ElementType> all_weights() {
  std::vector<ElementType> types = {DType::f32, DType::f16, DType::bf16};
  for (int i = 0; i < kBlockTypeCount; ++i) types.emplace_back(static_cast<BlockType>(i));
  return types;
}

std::shared_ptr<const TailSpec> tail_of(const Following& following) {
  auto spec = std::make_shared<TailSpec>();
  Chain& chain = spec->chain;
  const auto other = [&](TailAccess access, DType stored = DType::f32) {
    spec->access.push_back(access);
    return chain.add_input(stored);
  };
  uint16_t value = chain.add_input(DType::f32);
  if (following.bias) value = chain.add_apply(ScalarOp::add, value, other(TailAccess::column));
  if (following.gate) {
    uint16_t up = other(TailAccess::made);
    if (following.bias) up = chain.add_apply(ScalarOp::add, up, other(TailAccess::column));
    value = chain.add_apply(ScalarOp::mul, chain.add_apply(*following.gate, value), up);
  }
  if (following.residual)
    chain.add_apply(ScalarOp::add, value, other(TailAccess::place, following.stored));
  if (spec->access.empty()) return nullptr;
  return spec;
}

}  // namespace prism::testing_support
