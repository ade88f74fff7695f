// What plans say they take before they run, against what the pools counted, on every device found.
#include <numeric>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "support/devices.h"
#include "tensor/compile.h"
#include "tensor/storage.h"

namespace prism {
namespace {

// Reductions keep the chains between them apart, so that there are temporaries.
Tensor work(const Tensor& x) {
  const Tensor centred = x - mean(x, {-1}, true);
  const Tensor squares = sum(centred * centred, {0}, true);
  return centred * squares + sum(tanh(centred) * 2.0, {-1}, true);
}

PlanMemory of(const std::vector<PlanMemory>& all, const Device& device) {
  for (const PlanMemory& each : all)
    if (each.device == device) return each;
  ADD_FAILURE() << "nothing about " << device.id();
  return {};
}

TEST(PlanMemoryDevice, IsKnownBeforeItIsTaken) {
  for (const Device& device : test::every_device()) {
    const Tensor x = ones({301, 97}, DType::f32, device), y = work(x.eval());
    const MemoryStats before = memory_stats(device);
    const PlanMemory estimate = of(estimate_memory(std::span(&y, 1)), device);
    EXPECT_EQ(memory_stats(device).in_use_bytes, before.in_use_bytes) << device.id();
    EXPECT_EQ(memory_stats(device).allocations, before.allocations) << device.id();
    EXPECT_GT(estimate.temporaries, 0u) << device.id();
    EXPECT_GE(estimate.outputs, 301u * 97 * 4) << device.id();
    EXPECT_EQ(estimate.present, 301u * 97 * 4) << device.id();
    Plan plan(std::span(&y, 1));
    plan.run();
    EXPECT_EQ(of(plan.memory(), device).needed(), estimate.needed()) << device.id();
    EXPECT_EQ(memory_stats(device).in_use_bytes - before.in_use_bytes, estimate.needed())
        << device.id();
  }
}

TEST(PlanMemoryDevice, OfCompiledFunctions) {
  for (const Device& device : test::every_device()) {
    const Tensor weights = ones({97}, DType::f32, device);
    weights.eval();
    CompiledFunction f = compile([&](std::span<const Tensor> in) {
      return std::vector<Tensor>{work(in[0]) * weights, sum(in[0], {0})};
    });
    const MemoryStats before = memory_stats(device);
    const Tensor like = without_values({53, 97}, DType::f32, device);
    const PlanMemory estimate = of(f.estimate_memory(std::span(&like, 1)), device);
    EXPECT_EQ(memory_stats(device).in_use_bytes, before.in_use_bytes) << device.id();
    EXPECT_EQ(f.plans(), 0u);
    EXPECT_EQ(estimate.inputs, allocation_bytes(53 * 97 * 4)) << device.id();
    EXPECT_EQ(estimate.present, 97u * 4) << device.id();

    const Tensor x = ones({53, 97}, DType::f32, device);
    x.eval();
    const uint64_t held = memory_stats(device).in_use_bytes;
    std::vector<Tensor> results = f({x});
    EXPECT_EQ(memory_stats(device).in_use_bytes - held, estimate.needed()) << device.id();
    EXPECT_EQ(of(f.estimate_memory({&x, 1}), device).needed(), estimate.needed()) << device.id();
    for (int run = 0; run < 3; ++run) {  // replays take no more, once results are let go
      results.clear();
      results = f({x});
      EXPECT_EQ(memory_stats(device).in_use_bytes - held, estimate.needed()) << device.id();
    }
  }
}

TEST(PlanMemoryDevice, NothingIsComputedWithoutValues) {
  for (const Device& device : test::every_device()) {
    const Tensor none = without_values({5, 3}, DType::f32, device);
    EXPECT_THROW((none * 2.0).eval(), Error) << device.id();
    EXPECT_THROW(none.to_vector<float>(), Error) << device.id();
    const Tensor y = none * 2.0;
    Plan plan(std::span(&y, 1), {}, {.allocate = false});
    EXPECT_THROW(plan.run(), Error) << device.id();
  }
}

}  // namespace
}  // namespace prism
