// Many-row products over the CUDA double, with and without its cuBLASLt: producers round their
// output for the product, sums accumulate in place, and results match float64.
//
// PRISM_RANDOM_SEED repeats a run.
#include <cmath>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/quantise.h"
#include "support/doubles/use_cuda_double.h"
#include "support/ops/random_graph.h"
#include "tensor/plan/plan.h"
#include "tensor/storage.h"

namespace prism {
namespace {

using Rows = std::vector<double>;
constexpr int64_t kRows = 70, kWidth = 64, kWide = 96;
constexpr double kEpsilon = 1e-5;

struct Weights {
  Tensor norm, gate, up, down;
};

Tensor block(const Tensor& x, const Weights& w) {
  const Tensor h = rms_norm(x, w.norm, kEpsilon);
  return x + linear(silu(linear(h, w.gate)) * linear(h, w.up), w.down);
}

Rows product(const Rows& x, const Rows& w, int64_t k) {
  const auto columns = static_cast<int64_t>(w.size()) / k;
  Rows y(static_cast<size_t>(kRows * columns));
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t i = 0; i < k; ++i)
        y[static_cast<size_t>(r * columns + c)] +=
            x[static_cast<size_t>(r * k + i)] * w[static_cast<size_t>(c * k + i)];
  return y;
}

Rows values_of(const Tensor& w) { return (w.type().is_block() ? dequantise(w) : w).to_doubles(); }

Rows block_reference(const Rows& x, const Weights& w) {
  const Rows norm = values_of(w.norm);
  Rows h = x;
  for (size_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (size_t i = 0; i < kWidth; ++i) sum += x[r * kWidth + i] * x[r * kWidth + i];
    for (size_t i = 0; i < kWidth; ++i)
      h[r * kWidth + i] *= norm[i] / std::sqrt(sum / kWidth + kEpsilon);
  }
  Rows gate = product(h, values_of(w.gate), kWidth);
  const Rows up = product(h, values_of(w.up), kWidth);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
  Rows y = product(gate, values_of(w.down), kWide);
  for (size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  return y;
}

class CudaProducts : public testing::Test {
 protected:
  void TearDown() override { double_.expect_clean(); }

  Tensor drawn(const Shape& shape, ElementType type, const Device& device) {
    const Tensor x = uniform(shape, engine_(), -0.5, 0.5, DType::f32, Device::cpu());
    const Tensor stored = type.is_block() ? quantise(x, type.block()) : cast(x, type);
    return stored.eval().to(device).eval();
  }

  // Two blocks, three runs. launches: of kernels; products: of the library.
  void expect_right(ElementType type, int64_t launches, int64_t products) {
    SCOPED_TRACE(type.name());
    const Device device = double_.device();
    {
      const Tensor x = drawn({kRows, kWidth}, DType::f32, device);
      const Weights w = {drawn({kWidth}, DType::f32, device), drawn({kWide, kWidth}, type, device),
                         drawn({kWide, kWidth}, type, device),
                         drawn({kWidth, kWide}, type, device)};
      Rows wanted = x.to_doubles();
      for (double& each : wanted) each = std::tanh(each);
      for (int i = 0; i < 2; ++i) wanted = block_reference(wanted, w);
      const Tensor y = block(block(tanh(x), w), w);
      Plan plan(std::span(&y, 1));
      EXPECT_EQ(plan.steps().size(), 9u) << plan.explain();
      for (int run = 0; run < 3; ++run) {
        const Storage& out = *plan.output(0);
        write_storage(out, 0, std::vector<std::byte>(out.bytes, std::byte{0xCD}));
        const long long launched = double_.count("launches"), made = double_.count("products");
        plan.run();
        std::vector<float> got(static_cast<size_t>(kRows * kWidth));
        read_storage(out, 0, std::as_writable_bytes(std::span(got)));
        EXPECT_EQ(double_.count("launches") - launched, launches) << plan.explain();
        EXPECT_EQ(double_.count("products") - made, products) << plan.explain();
        // Rounding rows to f16 causes a mean relative error of 2^-12, to bf16 of 2^-9; unpacked
        // weights are rounded to f16 too.
        const double step = type == ElementType(DType::bf16) ? 1.6e-2
                            : type.is_block()                ? 4e-3
                                                             : 2e-3;
        double error = 0, power = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(got[i], wanted[i], 4 * step * (1 + std::abs(wanted[i])))
              << i << ", run " << run;
          error += (got[i] - wanted[i]) * (got[i] - wanted[i]);
          power += wanted[i] * wanted[i];
        }
        EXPECT_LT(error / power, step * step / 4);
      }
    }
    release_pooled_memory(device);
  }

  test::CudaDouble double_;
  std::mt19937_64 engine_{test::seed_of_run()};
};

TEST_F(CudaProducts, ByTheVendorsLibrary) {
  const auto library =
      double_.variable("PRISM_CUBLASLT_LIBRARY", test::DriverDouble::library("cuda"));
  // tanh; norm and gating of each block; the last sum, which goes to the caller's buffer.
  expect_right(DType::f16, 6, 6);
  expect_right(DType::bf16, 6, 6);
  expect_right(BlockType::q8_0, 12, 6);  // each product unpacks its weights
}

TEST_F(CudaProducts, ByKernels) {
  const auto library = double_.variable("PRISM_CUBLASLT_LIBRARY", "/no/such/libcublasLt.so");
  expect_right(DType::f16, 9, 0);
}

}  // namespace
}  // namespace prism
