// The matrix products for GPUs on the checked interpreter and on every device found: all weight
// types, awkward shapes, poisoned results.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <set>

#include <fmt/format.h>

#include "ops/product_kernels.h"
#include "runtime/case_run.h"
#include "runtime/discovery.h"
#include "support/product_cases.h"

namespace prism {
namespace {

using namespace testing_support;
using kernels::CaseRandom;

uint64_t seed() {
  static const uint64_t value = [] {
    const char* asked = std::getenv("PRISM_TEST_SEED");
    const uint64_t chosen =
        asked ? std::strtoull(asked, nullptr, 10)
              : static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) %
                    1000000;
    std::cout << "PRISM_TEST_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return value;
}

// Where a case runs: a device, or (none) the checked interpreter.
struct Place {
  std::string name;
  std::shared_ptr<DeviceDriver> driver;
};

std::vector<Place> places() {
  std::vector<Place> all = {{"checked", nullptr}};
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) all.push_back({driver->info().id, driver});
  return all;
}

class Products : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override { random_ = CaseRandom(seed()); }
  void TearDown() override {
    std::cout << programs_.size() << " programs, " << not_drawn_ << " sets of cases not drawn"
              << std::endl;
    EXPECT_LE(programs_.size(), 35u) << "one test";
  }

  std::vector<std::byte> run(const ir::Kernel& kernel, KernelCase one) {
    programs_.insert(kernel.name);
    const Contents contents = GetParam().driver
                                  ? run_case(Device(GetParam().driver, ""), kernel, one)
                                  : interpret_case(kernel, one, 32);
    return contents.back();
  }
  // All of them; where compiling takes seconds (software devices), some, drawn anew each run.
  std::vector<ElementType> drawn(std::vector<ElementType> types, size_t count) {
    if (!GetParam().driver || !GetParam().driver->info().software) return types;
    std::cout << "drawn:";
    while (types.size() > count)
      types.erase(types.begin() + static_cast<std::ptrdiff_t>(random_.next() % types.size()));
    for (const ElementType type : types) std::cout << " " << type.name();
    std::cout << std::endl;
    return types;
  }
  // Everything, but where compiling takes seconds one of so many.
  bool takes(uint32_t one_of) {
    if (!GetParam().driver || !GetParam().driver->info().software || random_.next() % one_of == 0)
      return true;
    ++not_drawn_;
    return false;
  }
  // x as round_rows leaves it.
  std::vector<std::byte> rounded_buffer(const Matrix& x) {
    KernelCase one;
    const ops::ProductLaunch launch = ops::round_rows_launch(x.rows, x.k, x.k);
    one.groups = launch.groups;
    one.params = launch.params;
    one.buffers = {x.bytes, kernels::poison(ops::rounded_bytes(x.rows, x.k) / 4, DType::u32)};
    return run(ops::round_rows(x.type.plain()), one);
  }
  ir::Capabilities capabilities() const {
    if (GetParam().driver) return GetParam().driver->info().capabilities;
    ir::Capabilities plain;
    plain.shared_bytes = 32 << 10;
    return plain;
  }

  CaseRandom random_{0};
  std::set<std::string> programs_;
  uint32_t not_drawn_ = 0;
};

// What a product of few rows adds to the plain one.
struct FewRows {
  ops::VectorProduct product;
  uint32_t n = 1, k = 256, rows = 1;
};

KernelCase case_of(const ops::ProductLaunch& launch) {
  KernelCase one;
  one.groups = launch.groups;
  one.params = launch.params;
  return one;
}

double gate_of(ops::Gate gate, double g) {
  if (gate == ops::Gate::silu) return g / (1 + std::exp(-g));
  return 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
}

void apply_epilogue(const ops::VectorProduct& p, uint32_t n, Expected& want, const Expected& up,
                    const Matrix& bias, const Matrix& bias_up, const Matrix& residual) {
  for (size_t i = 0; i < want.values.size(); ++i) {
    double value = want.values[i], size = want.magnitudes[i];
    if (p.bias) value += bias.values[i % n];
    if (p.gate != ops::Gate::none) {
      const double factor = up.values[i] + (p.bias ? bias_up.values[i % n] : 0.0);
      const double gated = gate_of(p.gate, value);
      // Both gates grow at most by 1.2 for each unit of their argument.
      size = 1.2 * (size + 1) * std::fabs(factor) + std::fabs(gated) * (up.magnitudes[i] + 1);
      value = gated * factor;
    }
    if (p.residual) value += residual.values[i];
    want.values[i] = value;
    want.magnitudes[i] = size + 2;
  }
}

constexpr double kBound = 3e-6;  // of the terms' magnitudes: f32 sums of some thousand

TEST_P(Products, FewRowsOfEveryType) {
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
    const bool gated = p.gate != ops::Gate::none;
    one.buffers = {w.bytes};
    if (gated) one.buffers.push_back(w_up.bytes);
    one.buffers.push_back(p.rounded ? rounded_buffer(x) : x.bytes);
    if (p.bias) one.buffers.push_back(bias.bytes);
    if (p.bias && gated) one.buffers.push_back(bias_up.bytes);
    if (p.residual) one.buffers.push_back(residual.bytes);
    one.buffers.push_back(kernels::poison(uint64_t(c.rows) * c.n, p.y));
    const auto got = run(kernel, one);
    for (const bool exact : {true, false}) {
      const Matrix rounded = exact && p.weight.is_block() ? rounded_to_bytes(x) : x;
      Expected want = product(w, rounded);
      apply_epilogue(p, c.n, want, product(w_up, rounded), bias, bias_up, residual);
      // Rounding x to bytes moves each term by at most 1/254 of the block's largest.
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
    p.x_rows = 1u << random_.next() % 4;
    p.x = random_.next() % 2 ? DType::f16 : DType::f32;
    const uint32_t units = static_cast<uint32_t>(random_.next() % (slow ? 3 : 12));
    const uint32_t k = type.is_block() ? type.block_elements() * (1 + units) : 8 * (1 + units * 5);
    const uint32_t n = 1 + static_cast<uint32_t>(random_.next() % (slow ? 40 : 150));
    p = ops::vector_product_for(p, n, k, capabilities(), 1 + random_.next() % 16);
    if (slow) p.shuffles = random_.next() % 2;
    p.rounded = type.is_block() && random_.next() % 2;
    check({p, n, k, 1 + static_cast<uint32_t>(random_.next() % p.x_rows)});
    // The same program for another shape: more than one tile of x.
    check({p, 17, type.is_block() ? std::max(p.k_tile + 256, 512u) : 1000, p.x_rows});
  }
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q4_k)}) {
    if (!takes(2)) continue;
    ops::VectorProduct p;
    p.weight = type;
    p.gate = type.is_block() ? ops::Gate::silu : ops::Gate::gelu;
    p.bias = true;
    p.residual = type.is_block();
    p.y = type.is_block() ? DType::f32 : DType::f16;
    check({ops::vector_product_for(p, 29, 512, capabilities(), 4), 29, 512, 1});
    p.gate = ops::Gate::none;
    p.x_rows = 2;
    p.residual = !p.residual;
    check({ops::vector_product_for(p, 31, 512, capabilities(), 1), 31, 512, 2});
    p.split = 4;
    p.k_tile = 8192;
    check({p, 5, 2048, 2});
  }
  for (const ElementType type : {DType::f32, DType::f16, DType::bf16}) {
    if (!takes(3)) continue;
    ops::VectorProduct p;
    p.weight = type;
    p.aligned = false;
    p.x_rows = 2;
    for (const uint32_t k : {1u, 37u, 331u}) check({p, 13, k, 2});
  }
}

// Results that the product rounds are those that round_rows makes of them, bit by bit.
TEST_P(Products, FewRowsThatAreRounded) {
  for (const ElementType type :
       drawn({DType::f16, BlockType::q4_k, BlockType::q6_k, BlockType::q8_0}, 1)) {
    const bool slow = GetParam().driver && GetParam().driver->info().software;
    const auto x_rows = 1 + static_cast<uint32_t>(random_.next() % (slow ? 2 : 8));
    const auto rows = 1 + static_cast<uint32_t>(random_.next() % x_rows);
    const auto n = 32 * (1 + static_cast<uint32_t>(random_.next() % 5));
    const uint32_t k = type.is_block() ? type.block_elements() * 3 : 72;
    ops::VectorProduct p;
    p.weight = type;
    p.x_rows = x_rows;
    p.rounded = p.bias = type.is_block();
    p.residual = !p.bias;
    p.gate = random_.next() % 2 ? ops::Gate::silu : ops::Gate::none;
    p = ops::vector_product_for(p, n, k, capabilities(), 1 + random_.next() % 16);
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
      if (p.gate != ops::Gate::none) one.buffers.push_back(up.bytes);
      one.buffers.push_back(first);
      if (p.bias) one.buffers.push_back(bias.bytes);
      if (p.bias && p.gate != ops::Gate::none) one.buffers.push_back(bias.bytes);
      if (p.residual) one.buffers.push_back(residual.bytes);
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

// A norm between two products of one row, done by them.
TEST_P(Products, NormsBetweenFewRows) {
  for (const ElementType type : drawn({BlockType::q4_k, BlockType::q8_0}, 1)) {
    const uint32_t k = type.block_elements() * 2, width = 256, n = 33;
    const float epsilon = 1e-2f;
    ops::VectorProduct p;
    p.weight = type;
    p.rounded = p.residual = true;
    p = ops::vector_product_for(p, width, k, capabilities(), 8);
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
    EXPECT_EQ(compare_product(got, DType::f32, product(next, normed), 0.02, 5e-4), "")
        << GetParam().name << " " << ops::vector_product(before).name << ", "
        << ops::vector_product(after).name;
  }
}

TEST_P(Products, FewRowsByExperts) {
  for (const ElementType type : {ElementType(DType::bf16), ElementType(BlockType::q5_k)}) {
    const uint32_t experts = 5, n = 19, k = 512, slots = 6;
    ops::VectorProduct p;
    p.weight = type;
    p.experts = true;
    p.gate = type.is_block() ? ops::Gate::silu : ops::Gate::none;
    p.rounded = type.is_block() && random_.next() % 2;
    p = ops::vector_product_for(p, n, k, capabilities(), 2);
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
      apply_epilogue(p, n, want, up, {}, {}, {});
      KernelCase one = case_of(ops::expert_vector_launch(p, n, k, slots, experts, share));
      one.buffers = {w.bytes};
      if (p.gate != ops::Gate::none) one.buffers.push_back(w_up.bytes);
      one.buffers.push_back(p.rounded ? rounded_buffer(x) : x.bytes);
      one.buffers.push_back(kernels::bytes_of(ids));
      one.buffers.push_back(kernels::poison(slots * n, DType::f32));
      EXPECT_EQ(compare_product(run(ops::vector_product(p), one), p.y, want, kBound, 1e-10), "")
          << GetParam().name << " " << type.name() << ", " << share << " slots a row";
    }
  }
}

// A batch of dense matrices as they lie, and the product of each pair.
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

// What a kernel with operands of this type sees of x.
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

TEST_P(Products, ManyRowsByFragments) {
  const auto check = [&](ops::FragmentProduct p, ops::ProductShape s) {
    const Pair pair = random_pair(random_, p.a, p.b, p.a_transposed, p.b_transposed, p.operand, s);
    const Matrix bias = random_matrix(random_, DType::f32, 1, s.n),
                 residual = random_matrix(random_, p.c, s.m * s.batch, s.n);
    Expected want = pair.want;
    add_to(want, p.bias ? &bias : nullptr, p.residual ? &residual : nullptr);
    KernelCase one = case_of(ops::fragment_product_launch(p, s));
    one.buffers = {pair.a.bytes, pair.b.bytes};
    if (p.bias) one.buffers.push_back(bias.bytes);
    if (p.residual) one.buffers.push_back(residual.bytes);
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
  // Both orders of both sides; several shapes and a shared batch by one program.
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      if (!takes(4)) continue;
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
  // Rows of any length, types converted on the way, bias and residual.
  for (const bool transposed : {false, true}) {
    if (!takes(2)) continue;
    ops::FragmentProduct p;
    p.a = DType::f32;
    p.b = transposed ? DType::f32 : DType::bf16;
    p.c = transposed ? DType::f16 : DType::bf16;
    p.a_transposed = transposed;
    p.b_transposed = !transposed;
    p.bias = !transposed;
    p.residual = transposed;
    p.aligned = false;
    p.run_ahead = transposed;
    p = small(p);
    for (const auto& [m, n, k] :
         {std::array{1u, 1u, 1u}, std::array{37u, 41u, 67u}, std::array{5u, 33u, 31u}})
      check(p, ops::dense_shape(p, m, n, k));
  }
  // Weights decoded on the way.
  std::vector<ElementType> blocks = all_weights();
  blocks.erase(blocks.begin(), blocks.begin() + 3);
  for (const ElementType type : drawn(blocks, 1)) {
    ops::FragmentProduct p;
    p.b = type;
    p.a = random_.next() % 2 ? DType::f32 : DType::f16;
    p.run_ahead = random_.next() % 2;
    p.bias = random_.next() % 2;
    p = small(p);
    check(p, ops::dense_shape(p, 21, 40, type.block_elements() * 2));
    check(p, ops::dense_shape(p, 33, 8, 256));
  }
}

TEST_P(Products, CutsThatDevicesGet) {
  // What fragment_product_for gives here, for a small and for a larger product.
  if (!GetParam().driver) GTEST_SKIP() << "the cut is a device's";
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q4_k)}) {
    if (!takes(2)) continue;
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

TEST_P(Products, ManyRowsInF32) {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      if (!takes(4)) continue;
      const ops::F32Product p{a_transposed, b_transposed, a_transposed, b_transposed};
      for (const auto& [m, n, k] :
           {std::array{1u, 1u, 1u}, std::array{36u, 132u, 20u}, std::array{131u, 7u, 29u}}) {
        ops::FragmentProduct as;
        as.a_transposed = a_transposed;
        as.b_transposed = b_transposed;
        ops::ProductShape s = ops::dense_shape(as, m, n, k);
        s.batch = m == 131 ? 2 : 1;
        Pair pair =
            random_pair(random_, DType::f32, DType::f32, a_transposed, b_transposed, DType::f32, s);
        const Matrix bias = random_matrix(random_, DType::f32, 1, n),
                     residual = random_matrix(random_, DType::f32, m * s.batch, n);
        add_to(pair.want, p.bias ? &bias : nullptr, p.residual ? &residual : nullptr);
        KernelCase one = case_of(ops::f32_product_launch(s));
        one.buffers = {pair.a.bytes, pair.b.bytes};
        if (p.bias) one.buffers.push_back(bias.bytes);
        if (p.residual) one.buffers.push_back(residual.bytes);
        one.buffers.push_back(kernels::poison(uint64_t(m) * n * s.batch, DType::f32));
        EXPECT_EQ(
            compare_product(run(ops::f32_product(p), one), DType::f32, pair.want, kBound, 1e-10),
            "")
            << GetParam().name << " " << m << " x " << n << " x " << k;
      }
    }
}

TEST_P(Products, ManyRowsByExperts) {
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q4_k)}) {
    if (!takes(2)) continue;
    const uint32_t experts = 7, n = 24, k = 256, slots = 90, share = 2;
    ops::FragmentProduct p;
    p.b = type;
    p.a = type.is_block() ? DType::f32 : DType::f16;
    p.experts = true;
    p.tile_m = p.tile_n = p.tile_k = 32;
    p.warps_m = 1;
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < slots; ++i)
      ids.push_back(static_cast<uint32_t>(random_.next() % experts % 5));  // two have none
    const uint32_t most = ops::expert_tiles_at_most(slots, experts, p.tile_m);
    KernelCase tables;
    tables.params = {slots, p.tile_m, experts};
    tables.buffers = {kernels::bytes_of(ids), kernels::poison(slots, DType::u32),
                      kernels::poison(4 + 4 * most, DType::u32)};
    const ir::Kernel maker = ops::expert_tables();
    programs_.insert(maker.name);
    const Contents made = GetParam().driver ? run_case(Device(GetParam().driver, ""), maker, tables)
                                            : interpret_case(maker, tables, 32);
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

INSTANTIATE_TEST_SUITE_P(Everywhere, Products, ::testing::ValuesIn(places()), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace prism
