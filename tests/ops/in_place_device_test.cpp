// Tests plans that repeatedly write rows into a cache, on every device found.
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "prism/compile.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/reduce.h"
#include "support/devices/devices.h"
#include "support/seed.h"
#include "tensor/op.h"

namespace prism {
namespace {

TEST(InPlaceDevice, CompiledFunctionsFillACache) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 engine(seed);
  for (const Device& device : test::every_device()) {
    constexpr int64_t kRows = 7, kColumns = 5;
    const Tensor cache = zeros({kRows, kColumns}, DType::f32, device);
    cache.eval();
    const Storage* const memory = cache.node()->storage[0].get();
    CompiledFunction step = compile([&](std::span<const Tensor> in) {
      const Tensor written = write_rows(cache, in[0], in[1] * 2.0);
      return std::vector<Tensor>{sum(written, {0}), written};
    });
    std::vector<double> wanted(kRows * kColumns, 0.0);
    for (int run = 0; run < 5; ++run) {
      const auto row = static_cast<int32_t>(engine() % kRows);
      std::vector<float> values;
      for (int64_t c = 0; c < kColumns; ++c) values.push_back(static_cast<float>(engine() % 100));
      const std::vector<Tensor> got = step(
          {from_vector<int32_t>({row}, {1}, device), from_vector(values, {1, kColumns}, device)});
      std::vector<double> sums(kColumns, 0.0);
      for (size_t c = 0; c < kColumns; ++c)
        wanted[static_cast<size_t>(row) * kColumns + c] = 2.0 * static_cast<double>(values[c]);
      for (size_t i = 0; i < wanted.size(); ++i) sums[i % kColumns] += wanted[i];
      EXPECT_EQ(got[0].to_doubles(), sums) << device.id() << " run " << run;
      EXPECT_EQ(got[1].to_doubles(), wanted) << device.id() << " run " << run;
      EXPECT_EQ(cache.to_doubles(), wanted) << device.id() << " run " << run;
      EXPECT_EQ(got[1].node()->storage[0].get(), memory) << device.id() << ": a copy was made";
    }
  }
}

TEST(InPlaceDevice, RefusesWhatHasNoMemoryYet) {
  const Device cpu = Device::cpu();
  const Tensor indices = from_vector<int32_t>({0}, {1}, cpu);
  const Tensor rows = zeros({1, 3}, DType::f32, cpu);
  const Tensor later = zeros({4, 3}, DType::f32, cpu);
  EXPECT_THROW(write_rows(later, indices, rows), Error);
  later.eval();
  EXPECT_THROW(write_rows(later.slice(0, 1, 3), indices, rows), Error);
  EXPECT_NO_THROW(write_rows(later, indices, rows).eval());
}

}  // namespace
}  // namespace prism
