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

std::vector<ElementType> all_weights() {
  std::vector<ElementType> types = {DType::f32, DType::f16, DType::bf16};
  for (int i = 0; i < kBlockTypeCount; ++i) types.emplace_back(static_cast<BlockType>(i));
  return types;
}

class Products : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override { random_ = CaseRandom(seed()); }
  void TearDown() override {
    std::cout << programs_.size() << " programs" << std::endl;
    EXPECT_LE(programs_.size(), 30u) << "one test";
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
  ir::Capabilities capabilities() const {
    if (GetParam().driver) return GetParam().driver->info().capabilities;
    ir::Capabilities plain;
    plain.shared_bytes = 32 << 10;
    return plain;
  }

  CaseRandom random_{0};
  std::set<std::string> programs_;
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
    one.buffers.push_back(x.bytes);
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
      const std::string wrong = compare_product(got, p.y, want, exact ? kBound : 0.05,
                                                p.y == DType::f16 ? 1e-6
                                                : exact           ? 1e-10
                                                                  : 5e-4);
      EXPECT_EQ(wrong, "") << what << (exact ? "" : ", x not rounded");
    }
  };
  const bool slow = !GetParam().driver || GetParam().driver->info().is_cpu;
  for (const ElementType type : drawn(all_weights(), 5)) {
    ops::VectorProduct p;
    p.weight = type;
    p.x_rows = 1u << random_.next() % 4;
    p.x = random_.next() % 2 ? DType::f16 : DType::f32;
    const uint32_t units = static_cast<uint32_t>(random_.next() % (slow ? 3 : 12));
    const uint32_t k = type.is_block() ? type.block_elements() * (1 + units) : 8 * (1 + units * 5);
    const uint32_t n = 1 + static_cast<uint32_t>(random_.next() % (slow ? 40 : 150));
    p = ops::vector_product_for(p, n, k, capabilities(), 1 + random_.next() % 16);
    check({p, n, k, 1 + static_cast<uint32_t>(random_.next() % p.x_rows)});
    // The same program for another shape: more than one tile of x.
    check({p, 17, type.is_block() ? std::max(p.k_tile + 256, 512u) : 1000, p.x_rows});
  }
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q4_k)}) {
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
    ops::VectorProduct p;
    p.weight = type;
    p.aligned = false;
    p.x_rows = 2;
    for (const uint32_t k : {1u, 37u, 331u}) check({p, 13, k, 2});
  }
}

TEST_P(Products, FewRowsByExperts) {
  for (const ElementType type : {ElementType(DType::bf16), ElementType(BlockType::q5_k)}) {
    const uint32_t experts = 5, n = 19, k = 512, slots = 6;
    ops::VectorProduct p;
    p.weight = type;
    p.experts = true;
    p.gate = type.is_block() ? ops::Gate::silu : ops::Gate::none;
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
      KernelCase one = case_of(ops::expert_vector_launch(p, n, k, slots, share));
      one.buffers = {w.bytes};
      if (p.gate != ops::Gate::none) one.buffers.push_back(w_up.bytes);
      one.buffers.push_back(x.bytes);
      one.buffers.push_back(kernels::bytes_of(ids));
      one.buffers.push_back(kernels::poison(slots * n, DType::f32));
      EXPECT_EQ(compare_product(run(ops::vector_product(p), one), p.y, want, kBound, 1e-10), "")
          << GetParam().name << " " << type.name() << ", " << share << " slots a row";
    }
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
