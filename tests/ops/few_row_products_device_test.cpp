// Tests matrix products of few rows on the checked interpreter and on every device found: all
// weight types, awkward shapes, poisoned results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "support/ops/products_anywhere.h"

namespace prism::testing_support {
namespace {

class FewRowProducts : public ProductsAnywhere {};

// The parameters of a few-row product.
struct FewRows {
  ops::VectorProduct product;
  uint32_t n = 1, k = 256, rows = 1;
  Following after = {};
};

// The product with its epilogue.
ops::VectorProduct with(ops::VectorProduct p, const Following& after) {
  p.pair = after.gate.has_value();
  p.tail = tail_of(after);
  return p;
}

double gate_of(ScalarOp gate, double g) {
  if (gate == ScalarOp::silu) return g / (1 + std::exp(-g));
  return 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
}

void apply(const Following& after, uint32_t n, Expected& want, const Expected& up,
           const Matrix& bias, const Matrix& bias_up, const Matrix& residual) {
  for (size_t i = 0; i < want.values.size(); ++i) {
    double value = want.values[i], size = want.magnitudes[i];
    if (after.bias) value += bias.values[i % n];
    if (after.gate) {
      const double factor = up.values[i] + (after.bias ? bias_up.values[i % n] : 0.0);
      const double gated = gate_of(*after.gate, value);
      // Both gates grow by at most 1.2 per unit of their argument.
      size = 1.2 * (size + 1) * std::fabs(factor) + std::fabs(gated) * (up.magnitudes[i] + 1);
      value = gated * factor;
    }
    if (after.residual) value += residual.values[i];
    want.values[i] = value;
    want.magnitudes[i] = size + 2;
  }
}

TEST_P(FewRowProducts, FewRowsOfEveryType) {
  const auto check = [&](const FewRows& c) {
    const ops::VectorProduct& p = c.product;
    const std::string what = fmt::format("{} {} x {}, {} rows, {} {}", GetParam().name, c.n, c.k,
                                         c.rows, p.weight.name(), dtype_name(p.x));
    const ir::Kernel kernel = ops::vector_product(p);
    const Matrix w = random_matrix(random_, p.weight, c.n, c.k),
                 w_up = random_matrix(random_, p.weight, c.n, c.k),
                 x = random_matrix(random_, p.x, c.rows, c.k),
                 bias = random_matrix(random_, DType::f32, 1, c.n),
                 bias_up = random_matrix(random_, DType::f32, 1, c.n),
                 residual = random_matrix(random_, p.y, c.rows, c.n);
    KernelCase one = case_of(ops::vector_product_launch(p, c.n, c.k, c.rows, c.k, c.n));
    one.buffers = {w.bytes};
    if (p.pair) one.buffers.push_back(w_up.bytes);
    one.buffers.push_back(p.rounded ? rounded_buffer(x) : x.bytes);
    if (c.after.bias) one.buffers.push_back(bias.bytes);
    if (c.after.bias && p.pair) one.buffers.push_back(bias_up.bytes);
    if (c.after.residual) one.buffers.push_back(residual.bytes);
    one.buffers.push_back(kernels::poison(uint64_t(c.rows) * c.n, p.y));
    const auto got = run(kernel, one);
    for (const bool exact : {true, false}) {
      const Matrix rounded = exact && p.weight.is_block() ? rounded_to_bytes(x) : x;
      Expected want = product(w, rounded);
      apply(c.after, c.n, want, product(w_up, rounded), bias, bias_up, residual);
      // Rounding x to bytes changes each term by at most 1/254 of the block's largest.
      const std::string wrong = compare_product(got, p.y, want, exact ? kBound : 0.02,
                                                p.y == DType::f16 ? 1e-6
                                                : exact           ? 1e-10
                                                                  : 5e-4);
      EXPECT_EQ(wrong, "") << what << (exact ? "" : ", x not rounded");
    }
  };
  const bool slow = !GetParam().driver || GetParam().driver->info().is_cpu;
  for (const ElementType type : drawn(all_weights(), 3)) {
    ops::VectorProduct p;
    p.weight = type;
    p.x_rows = 1u << random_.next() % (is_intel() ? 2 : 4);  // more take its compiler half a minute
    p.x = random_.next() % 2 ? DType::f16 : DType::f32;
    const uint32_t units = static_cast<uint32_t>(random_.next() % (slow ? 3 : 12));
    const uint32_t k = type.is_block() ? type.block_elements() * (1 + units) : 8 * (1 + units * 5);
    const uint32_t n = 1 + static_cast<uint32_t>(random_.next() % (slow ? 40 : 150));
    p.rounded = type.is_block() && random_.next() % 2;
    p = ops::vector_product_for(p, n, k, capabilities(), 1 + random_.next() % 16);
    if (slow) p.shuffles = random_.next() % 2;
    check({p, n, k, 1 + static_cast<uint32_t>(random_.next() % p.x_rows)});
    // The same program for another shape: shorter rows if they are read at once, else more than one
    // tile of x.
    const uint32_t longer = type.is_block() ? std::max(p.k_tile + 256, 512u) : 1000;
    check({p, 17, p.at_once ? type.block_elements() : longer, p.x_rows});
    if (!p.at_once) continue;
    EXPECT_THROW(ops::vector_product_launch(p, 17, 1 << 20, 1, 1 << 20, 17), Error);
    p.at_once = false;
    check({p, 17, longer, p.x_rows});
  }
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q4_k)}) {
    if (!takes(2)) continue;
    ops::VectorProduct p;
    p.weight = type;
    p.y = type.is_block() ? DType::f32 : DType::f16;
    Following after{true, type.is_block(), type.is_block() ? ScalarOp::silu : ScalarOp::gelu_tanh,
                    p.y};
    check({ops::vector_product_for(with(p, after), 29, 512, capabilities(), 4), 29, 512, 1, after});
    after.gate.reset();
    after.residual = !after.residual;
    p.x_rows = 2;
    p = with(p, after);
    check({ops::vector_product_for(p, 31, 512, capabilities(), 1), 31, 512, 2, after});
    p.split = 4;
    p.k_tile = 8192;
    check({p, 5, 2048, 2, after});
  }
  const std::vector<ElementType> plain = {DType::f32, DType::f16, DType::bf16};
  const uint64_t least = random_.next() % plain.size();  // tested on every device
  for (const ElementType type : plain) {
    if (type != plain[least] && !takes(3)) continue;
    ops::VectorProduct p;
    p.weight = type;
    p.aligned = false;
    p.x_rows = 2;
    for (const uint32_t k : {1u, 37u, 331u}) check({p, 13, k, 2});
  }
}

// Results that the product rounds equal those of round_rows bit for bit.
TEST_P(FewRowProducts, FewRowsThatAreRounded) {
  for (const ElementType type :
       drawn({DType::f16, BlockType::q4_k, BlockType::q6_k, BlockType::q8_0}, 1)) {
    const auto x_rows = 1 + static_cast<uint32_t>(random_.next() % (compiles_slowly() ? 2 : 8));
    const auto rows = 1 + static_cast<uint32_t>(random_.next() % x_rows);
    const auto n = 32 * (1 + static_cast<uint32_t>(random_.next() % 5));
    const uint32_t k = type.is_block() ? type.block_elements() * 3 : 72;
    ops::VectorProduct p;
    p.weight = type;
    p.x_rows = x_rows;
    p.rounded = type.is_block();
    Following after{p.rounded, !p.rounded};
    if (random_.next() % 2) after.gate = ScalarOp::silu;
    p = ops::vector_product_for(with(p, after), n, k, capabilities(), 1 + random_.next() % 16);
    const auto rounding =
        ops::rounding_product(p, n, capabilities(), 1 + static_cast<uint32_t>(random_.next() % 9));
    ASSERT_TRUE(rounding) << p.subgroups << " " << p.split << " " << p.rows_each;
    const Matrix w = random_matrix(random_, type, n, k), up = random_matrix(random_, type, n, k),
                 bias = random_matrix(random_, DType::f32, 1, n),
                 residual = random_matrix(random_, DType::f32, rows, n),
                 x = random_matrix(random_, p.x, rows, k);
    const std::vector<std::byte> first = p.rounded ? rounded_buffer(x) : x.bytes;
    const auto run_as = [&](const ops::VectorProduct& product, uint64_t words) {
      KernelCase one = case_of(ops::vector_product_launch(product, n, k, rows, k, n));
      one.buffers = {w.bytes};
      if (p.pair) one.buffers.push_back(up.bytes);
      one.buffers.push_back(first);
      if (after.bias) one.buffers.push_back(bias.bytes);
      if (after.bias && p.pair) one.buffers.push_back(bias.bytes);
      if (after.residual) one.buffers.push_back(residual.bytes);
      one.buffers.push_back(kernels::poison(words, DType::u32));
      return run(ops::vector_product(product), one);
    };
    Matrix results = x;
    results.rows = rows;
    results.k = n;
    results.type = DType::f32;
    results.bytes = run_as(p, uint64_t(rows) * n);
    EXPECT_EQ(run_as(*rounding, ops::rounded_bytes(rows, n) / 4), rounded_buffer(results))
        << GetParam().name << " " << ops::vector_product(*rounding).name << " " << rows << " rows, "
        << n << " x " << k;
  }
}

// A norm between two one-row products, folded into them.
TEST_P(FewRowProducts, NormsBetweenFewRows) {
  for (const ElementType type : drawn({BlockType::q4_k, BlockType::q8_0}, 1)) {
    const uint32_t k = type.block_elements() * 2, width = 256, n = 33;
    const float epsilon = 1e-2f;
    ops::VectorProduct p;
    p.weight = type;
    p.rounded = true;
    p = ops::vector_product_for(with(p, {.residual = true}), width, k, capabilities(), 8);
    const auto rounding = ops::rounding_product(p, width, capabilities(), 8);
    ASSERT_TRUE(rounding);
    ops::VectorProduct before = *rounding;
    before.unscaled = true;
    ops::VectorProduct after;
    after.weight = type;
    after.rounded = true;
    after = ops::vector_product_for(after, n, width, capabilities(), 8);
    after.scale_epsilon = epsilon;
    const Matrix w = random_matrix(random_, type, width, k), x = random_matrix(random_, p.x, 1, k),
                 residual = random_matrix(random_, DType::f32, 1, width),
                 scale = random_matrix(random_, DType::f32, 1, width),
                 next = random_matrix(random_, type, n, width);
    KernelCase one = case_of(ops::vector_product_launch(before, width, k, 1, k, width));
    one.buffers = {w.bytes,
                   rounded_buffer(x),
                   residual.bytes,
                   scale.bytes,
                   kernels::poison(width, DType::f32),
                   kernels::poison(ops::unscaled_bytes(width) / 4, DType::u32)};
    const auto rows = run(ops::vector_product(before), one);
    KernelCase two = case_of(ops::vector_product_launch(after, n, width, 1, width, n));
    two.buffers = {next.bytes, rows, kernels::poison(n, DType::f32)};
    const auto got = run(ops::vector_product(after), two);
    Matrix normed = residual;
    normed.values = product(w, rounded_to_bytes(x)).values;
    double squares = 0;
    for (size_t i = 0; i < width; ++i) {
      normed.values[i] += residual.values[i];
      squares += normed.values[i] * normed.values[i];
    }
    for (size_t i = 0; i < width; ++i)
      normed.values[i] *= scale.values[i] / std::sqrt(squares / width + epsilon);
    // The row is rounded before scaling, which changes no element by more than one step.
    EXPECT_EQ(compare_product(got, DType::f32, product(next, rounded_to_bytes(normed)), 0.02, 1e-5),
              "")
        << GetParam().name << " " << ops::vector_product(before).name << ", "
        << ops::vector_product(after).name;
  }
}

TEST_P(FewRowProducts, FewRowsByExperts) {
  for (const ElementType type : {ElementType(DType::bf16), ElementType(BlockType::q5_k)}) {
    const uint32_t experts = 5, n = 19, k = 512, slots = 6;
    ops::VectorProduct p;
    p.weight = type;
    p.experts = true;
    Following after;
    if (type.is_block()) after.gate = ScalarOp::silu;
    p.rounded = type.is_block() && random_.next() % 2;
    p = ops::vector_product_for(with(p, after), n, k, capabilities(), 2);
    const Matrix w = random_matrix(random_, type, experts * n, k),
                 w_up = random_matrix(random_, type, experts * n, k);
    for (const uint32_t share : {1u, 3u}) {
      const Matrix x = random_matrix(random_, DType::f32, slots / share, k);
      const Matrix rounded = type.is_block() ? rounded_to_bytes(x) : x;
      const Expected all = product(w, rounded), all_up = product(w_up, rounded);
      std::vector<uint32_t> ids;
      Expected want, up;
      for (uint32_t slot = 0; slot < slots; ++slot) {
        ids.push_back(static_cast<uint32_t>(random_.next() % experts));
        const size_t first = (slot / share * experts + ids.back()) * n;
        for (size_t r = first; r < first + n; ++r) {
          want.values.push_back(all.values[r]);
          want.magnitudes.push_back(all.magnitudes[r]);
          up.values.push_back(all_up.values[r]);
          up.magnitudes.push_back(all_up.magnitudes[r]);
        }
      }
      apply(after, n, want, up, {}, {}, {});
      KernelCase one = case_of(ops::expert_vector_launch(p, n, k, slots, experts, share));
      one.buffers = {w.bytes};
      if (p.pair) one.buffers.push_back(w_up.bytes);
      one.buffers.push_back(p.rounded ? rounded_buffer(x) : x.bytes);
      one.buffers.push_back(kernels::bytes_of(ids));
      one.buffers.push_back(kernels::poison(slots * n, DType::f32));
      EXPECT_EQ(compare_product(run(ops::vector_product(p), one), p.y, want, kBound, 1e-10), "")
          << GetParam().name << " " << type.name() << ", " << share << " slots per row";
    }
  }
}

PRISM_PRODUCTS_EVERYWHERE(FewRowProducts);

}  // namespace
}  // namespace prism::testing_support
