// Tests matrix products of many rows on the checked interpreter and on every device found: both
// layouts of both operands, decoded weights, awkward shapes, poisoned results.
#include <gtest/gtest.h>

#include <array>
#include <iostream>

#include "support/devices/devices.h"
#include "support/ops/products_anywhere.h"

namespace prism::testing_support {
namespace {

class ManyRowProducts : public ProductsAnywhere {};

// Intel's compiler gets one product with fragments and one in f32: emulated fragments become loops
// that it unrolls for 20 s to 80 s per program.
constexpr const char* kMinutesOnIntel =
    "Intel's OpenCL takes minutes to compile fragments; PoCL runs the same text";

// A batch of dense matrices as stored, and the product of each pair.
struct Pair {
  Matrix a, b;  // all matrices of the batch; rows as stored
  Expected want;
};

Matrix transposed(const Matrix& x) {
  Matrix result{x.type, x.k, x.rows, {}, std::vector<double>(x.values.size())};
  for (uint32_t r = 0; r < x.rows; ++r)
    for (uint32_t c = 0; c < x.k; ++c)
      result.values[uint64_t(c) * x.rows + r] = x.values[uint64_t(r) * x.k + c];
  return result;
}

// Rows [first, first + count) of x.
Matrix rows_of(const Matrix& x, uint32_t first, uint32_t count) {
  Matrix result{x.type, count, x.k, {}, {}};
  const auto from = x.values.begin() + static_cast<std::ptrdiff_t>(uint64_t(first) * x.k);
  result.values.assign(from, from + static_cast<std::ptrdiff_t>(uint64_t(count) * x.k));
  return result;
}

// x as seen by a kernel with operands of this type.
Matrix rounded_to(const Matrix& x, DType type) {
  Matrix result = x;
  for (double& value : result.values) {
    const auto narrow = static_cast<float>(value);
    value = static_cast<double>(type == DType::f16    ? f32_from_f16(f16_from_f32(narrow))
                                : type == DType::bf16 ? f32_from_bf16(bf16_from_f32(narrow))
                                                      : narrow);
  }
  return result;
}

Pair random_pair(CaseRandom& random, DType a, ElementType b, bool a_transposed, bool b_transposed,
                 DType operand, ops::ProductShape& s) {
  Pair pair;
  const uint32_t a_count = (s.batch + s.a_share - 1) / s.a_share,
                 b_count = (s.batch + s.b_share - 1) / s.b_share;
  const uint32_t a_rows = a_transposed ? s.k : s.m, b_rows = b_transposed ? s.n : s.k;
  pair.a = random_matrix(random, a, a_rows * a_count, a_transposed ? s.m : s.k);
  pair.b = random_matrix(random, b, b_rows * b_count, b_transposed ? s.k : s.n);
  s.a_batch = s.m * s.k;
  s.b_batch = b.is_block() ? s.n : s.n * s.k;
  s.c_batch = s.m * s.n;
  const Matrix left = rounded_to(pair.a, operand), right = rounded_to(pair.b, operand);
  for (uint32_t z = 0; z < s.batch; ++z) {
    Matrix x = rows_of(left, z / s.a_share * a_rows, a_rows);
    Matrix w = rows_of(right, z / s.b_share * b_rows, b_rows);
    if (a_transposed) x = transposed(x);
    if (!b_transposed) w = transposed(w);
    const Expected one = product(w, x);
    pair.want.values.insert(pair.want.values.end(), one.values.begin(), one.values.end());
    pair.want.magnitudes.insert(pair.want.magnitudes.end(), one.magnitudes.begin(),
                                one.magnitudes.end());
  }
  return pair;
}

void add_to(Expected& want, const Matrix* bias, const Matrix* residual) {
  for (size_t i = 0; i < want.values.size(); ++i) {
    if (bias) want.values[i] += bias->values[i % bias->values.size()];
    if (residual) want.values[i] += residual->values[i];
    want.magnitudes[i] += 2;
  }
}

TEST_P(ManyRowProducts, ManyRowsByFragments) {
  const auto check = [&](ops::FragmentProduct p, ops::ProductShape s, Following after = {}) {
    after.stored = p.c;
    p.tail = tail_of(after);
    const Pair pair = random_pair(random_, p.a, p.b, p.a_transposed, p.b_transposed, p.operand, s);
    const Matrix bias = random_matrix(random_, DType::f32, 1, s.n),
                 residual = random_matrix(random_, p.c, s.m * s.batch, s.n);
    Expected want = pair.want;
    add_to(want, after.bias ? &bias : nullptr, after.residual ? &residual : nullptr);
    KernelCase one = case_of(ops::fragment_product_launch(p, s));
    one.buffers = {pair.a.bytes, pair.b.bytes};
    if (after.bias) one.buffers.push_back(bias.bytes);
    if (after.residual) one.buffers.push_back(residual.bytes);
    one.buffers.push_back(kernels::poison(uint64_t(s.m) * s.n * s.batch, p.c));
    EXPECT_EQ(compare_product(run(ops::fragment_product(p), one), p.c, want,
                              p.b.is_block() ? 5e-6 : kBound, p.c == DType::f32 ? 1e-9 : 1e-4),
              "")
        << GetParam().name << " " << ops::fragment_product(p).name << " " << s.m << " x " << s.n
        << " x " << s.k << ", batch " << s.batch;
  };
  const auto small = [](ops::FragmentProduct p) {
    p.tile_m = p.tile_n = p.tile_k = 32;
    p.warps_m = 1;
    return p;
  };
  // Both layouts of both operands; several shapes and a shared batch with one program. One of them
  // runs on every device.
  const uint64_t least = random_.next() % 4;
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      if (least != 2u * a_transposed + b_transposed && !takes(4)) continue;
      ops::FragmentProduct p;
      p.a_transposed = a_transposed;
      p.b_transposed = b_transposed;
      p.run_ahead = a_transposed;
      p.stages = b_transposed ? 3 : 2;
      p.operand = a_transposed != b_transposed ? DType::bf16 : DType::f16;
      p.a = p.operand;
      p.b = p.operand;
      p = small(p);
      for (const auto& [m, n, k] : {std::array{40u, 48u, 72u}, std::array{8u, 104u, 8u}}) {
        ops::ProductShape s = ops::dense_shape(p, m, n, k);
        if (k == 8) {
          s.batch = 4;
          s.b_share = 2;
        }
        check(p, s);
      }
    }
  // Rows of any length, converted types, bias and residual.
  for (const bool transposed : {false, true}) {
    if (!takes(2)) continue;
    ops::FragmentProduct p;
    p.a = DType::f32;
    p.b = transposed ? DType::f32 : DType::bf16;
    p.c = transposed ? DType::f16 : DType::bf16;
    p.a_transposed = transposed;
    p.b_transposed = !transposed;
    p.aligned = false;
    p.run_ahead = transposed;
    p = small(p);
    for (const auto& [m, n, k] :
         {std::array{1u, 1u, 1u}, std::array{37u, 41u, 67u}, std::array{5u, 33u, 31u}})
      check(p, ops::dense_shape(p, m, n, k), {!transposed, transposed});
  }
  // Decoded weights; Intel's compiler takes more than a minute per type.
  if (is_intel()) {
    test::left_out(GetParam().name, kMinutesOnIntel);
    return;
  }
  std::vector<ElementType> blocks = all_weights();
  blocks.erase(blocks.begin(), blocks.begin() + 3);
  for (const ElementType type : drawn(blocks, 1)) {
    ops::FragmentProduct p;
    p.b = type;
    p.a = random_.next() % 2 ? DType::f32 : DType::f16;
    p.run_ahead = random_.next() % 2;
    const Following after{random_.next() % 2 != 0};
    p = small(p);
    check(p, ops::dense_shape(p, 21, 40, type.block_elements() * 2), after);
    check(p, ops::dense_shape(p, 33, 8, 256), after);
  }
}

TEST_P(ManyRowProducts, CutsThatDevicesGet) {
  // The tiling of fragment_product_for, for a small and a larger product.
  if (!GetParam().driver) GTEST_SKIP() << "the tiling depends on a device";
  if (is_intel()) GTEST_SKIP() << kMinutesOnIntel;
  const bool least_block = random_.next() % 2;  // tested on every device
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q4_k)}) {
    if (type.is_block() != least_block && !takes(2)) continue;
    ops::FragmentProduct p;
    p.b = type;
    ops::ProductShape s = ops::dense_shape(p, 136, 264, 256);
    p = ops::fragment_product_for(p, s, capabilities(), 2);
    const Pair pair = random_pair(random_, p.a, p.b, false, true, p.operand, s);
    KernelCase one = case_of(ops::fragment_product_launch(p, s));
    one.buffers = {pair.a.bytes, pair.b.bytes, kernels::poison(136 * 264, DType::f32)};
    EXPECT_EQ(compare_product(run(ops::fragment_product(p), one), p.c, pair.want, 5e-6, 1e-9), "")
        << GetParam().name << " " << ops::fragment_product(p).name;
  }
}

TEST_P(ManyRowProducts, ManyRowsInF32) {
  const uint64_t least = random_.next() % 4;  // tested on every device
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      if (least != 2u * a_transposed + b_transposed && !takes(4)) continue;
      const Following after{a_transposed, b_transposed};
      constexpr std::array kTypes = {DType::f32, DType::f16, DType::bf16};
      const DType type = kTypes[random_.next() % 3];
      ops::F32Product p;
      p.a = p.b = type;
      p.a_transposed = a_transposed;
      p.b_transposed = b_transposed;
      p.tail = tail_of(after);
      for (const auto& [m, n, k] :
           {std::array{1u, 1u, 1u}, std::array{36u, 132u, 20u}, std::array{131u, 7u, 29u}}) {
        ops::FragmentProduct as;
        as.a_transposed = a_transposed;
        as.b_transposed = b_transposed;
        ops::ProductShape s = ops::dense_shape(as, m, n, k);
        s.batch = m == 131 ? 2 : 1;
        Pair pair = random_pair(random_, type, type, a_transposed, b_transposed, DType::f32, s);
        const Matrix bias = random_matrix(random_, DType::f32, 1, n),
                     residual = random_matrix(random_, DType::f32, m * s.batch, n);
        add_to(pair.want, after.bias ? &bias : nullptr, after.residual ? &residual : nullptr);
        KernelCase one = case_of(ops::f32_product_launch(s));
        one.buffers = {pair.a.bytes, pair.b.bytes};
        if (after.bias) one.buffers.push_back(bias.bytes);
        if (after.residual) one.buffers.push_back(residual.bytes);
        one.buffers.push_back(kernels::poison(uint64_t(m) * n * s.batch, DType::f32));
        EXPECT_EQ(
            compare_product(run(ops::f32_product(p), one), DType::f32, pair.want, kBound, 1e-10),
            "")
            << GetParam().name << " " << m << " x " << n << " x " << k;
      }
    }
}

TEST_P(ManyRowProducts, ManyRowsByExperts) {
  if (is_intel()) GTEST_SKIP() << kMinutesOnIntel;
  const bool least_block = random_.next() % 2;  // tested on every device
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q4_k)}) {
    if (type.is_block() != least_block && !takes(2)) continue;
    const uint32_t experts = 7, n = 24, k = 256, slots = 90, share = 2;
    ops::FragmentProduct p;
    p.b = type;
    p.a = type.is_block() ? DType::f32 : DType::f16;
    p.experts = true;
    p.tile_m = p.tile_n = p.tile_k = 32;
    p.warps_m = 1;
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < slots; ++i)
      ids.push_back(
          static_cast<uint32_t>(random_.next() % experts % 5));  // two experts have no rows
    const uint32_t most = ops::expert_tiles_at_most(slots, experts, p.tile_m);
    KernelCase tables;
    tables.params = {slots, p.tile_m, experts};
    tables.buffers = {kernels::bytes_of(ids), kernels::poison(slots, DType::u32),
                      kernels::poison(4 + 4 * most, DType::u32)};
    const Contents made = run_all(ops::expert_tables(), tables);
    const Matrix w = random_matrix(random_, type, experts * n, k),
                 x = random_matrix(random_, p.a, slots / share, k);
    const Expected all = product(rounded_to(w, DType::f16), rounded_to(x, DType::f16));
    Expected want;
    for (uint32_t slot = 0; slot < slots; ++slot)
      for (uint32_t r = 0; r < n; ++r) {
        const size_t at = (slot / share * experts + ids[slot]) * n + r;
        want.values.push_back(all.values[at]);
        want.magnitudes.push_back(all.magnitudes[at]);
      }
    KernelCase one = case_of(ops::expert_product_launch(p, slots, n, k, experts, share));
    one.buffers = {x.bytes, w.bytes, made[1], made[2], kernels::poison(slots * n, DType::f32)};
    EXPECT_EQ(compare_product(run(ops::fragment_product(p), one), DType::f32, want, 5e-6, 1e-9), "")
        << GetParam().name << " " << type.name();
  }
}

PRISM_PRODUCTS_EVERYWHERE(ManyRowProducts);

}  // namespace
}  // namespace prism::testing_support
