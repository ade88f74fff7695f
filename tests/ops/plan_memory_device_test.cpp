// Tests the memory that plans report before they run against the pools' counters, on every device
// found.
#include <algorithm>
#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "prism/compile.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/quantise.h"
#include "prism/ops/reduce.h"
#include "support/devices/devices.h"
#include "tensor/plan/plan.h"
#include "tensor/storage.h"

namespace prism {
namespace {

// Reductions separate the chains, so that there are temporaries.
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

// The maximum bytes of live temporaries, counted from what steps read and write.
uint64_t alive_at_once(const Plan& plan) {
  std::vector<uint64_t> alive(plan.steps().size());
  for (uint32_t s = 0; s < plan.slots().size(); ++s) {
    if (!plan.slots()[s].is_temporary()) continue;
    std::optional<size_t> first, last;
    for (size_t i = 0; i < plan.steps().size(); ++i) {
      const PlanStep& step = plan.steps()[i];
      if (!std::ranges::count(step.reads, s) && !std::ranges::count(step.writes, s)) continue;
      if (!first) first = i;
      last = i;
    }
    for (size_t i = first.value_or(1); i <= last.value_or(0); ++i)
      alive[i] += plan.slots()[s].bytes;
  }
  return std::ranges::max(alive);
}

std::vector<float> read_floats(const Storage& storage) {
  std::vector<float> values(storage.bytes / sizeof(float));
  read_storage(storage, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

// Memory is proportional to live values, not to the number of steps.
TEST(PlanMemoryDevice, IsThatOfValuesThatLiveAtOnce) {
  for (const Device& device : test::every_device()) {
    const Tensor x = ones({64, 256}, DType::f32, device).eval();
    const auto turned = [&](int times) {
      Tensor y = x;
      for (int i = 0; i < times; ++i) y = roll(y, 1, 0);
      return y;
    };
    const auto bytes = [&](int times) {
      const Tensor y = turned(times);
      return Plan(std::span(&y, 1), {}, {.allocate = false}).arena_bytes(device);
    };
    EXPECT_EQ(bytes(2), 64u * 256 * 4) << device.id();
    EXPECT_EQ(bytes(3), 2u * 64 * 256 * 4) << device.id();
    EXPECT_EQ(bytes(20), 2u * 64 * 256 * 4) << device.id();
    Tensor deep = work(x);
    for (int i = 0; i < 4; ++i) deep = work(deep);
    const Plan plan(std::span(&deep, 1), {}, {.allocate = false});
    EXPECT_LE(plan.arena_bytes(device), alive_at_once(plan) * 5 / 4 + 4096) << plan.explain();
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
    for (int run = 0; run < 3; ++run) {  // replays allocate nothing once results are released
      results.clear();
      results = f({x});
      EXPECT_EQ(memory_stats(device).in_use_bytes - held, estimate.needed()) << device.id();
    }
  }
}

// Plans that share an arena hold only the largest one.
TEST(PlanMemoryDevice, OldArenasAreLetGo) {
  for (const Device& device : test::every_device()) {
    const Tensor x = ones({64, 256}, DType::f32, device).eval();
    const Tensor few = roll(roll(x.slice(0, 0, 8), 1, 0), 1, 0), all = roll(roll(x, 1, 0), 1, 0);
    const uint64_t before = memory_stats(device).in_use_bytes;
    const auto arenas = std::make_shared<SharedArenas>();
    Plan small(std::span(&few, 1), {}, {.arenas = arenas});
    for (int run = 0; run < 3; ++run) small.run();
    Plan large(std::span(&all, 1), {}, {.arenas = arenas});
    small.use_shared_arenas();
    EXPECT_EQ(memory_stats(device).in_use_bytes - before,
              of(large.memory(), device).needed() + of(small.memory(), device).outputs)
        << device.id();
    small.run();
    EXPECT_EQ(read_floats(*small.output(0)), std::vector<float>(8 * 256, 1.0f)) << device.id();
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

// The gradient to the input of a quantised product unpacks the weights at each run: kept, those of
// a large model would not fit.
TEST(PlanMemoryDevice, UnpackedWeightsAreNotKept) {
  constexpr int64_t kLayers = 6, kWidth = 512;
  constexpr uint64_t kUnpacked = uint64_t{kWidth} * kWidth * 4;
  for (const Device& device : test::every_device()) {
    if (device.info().is_cpu) continue;
    std::vector<Tensor> weights;
    for (int64_t i = 0; i < kLayers; ++i)
      weights.push_back(
          quantise(randn({kWidth, kWidth}) * 0.05, BlockType::q8_0).to(device).eval());
    CompiledFunction slopes = compile([&](std::span<const Tensor> in) -> std::vector<Tensor> {
      Tensor y = in[0];
      for (const Tensor& each : weights) y = tanh(linear(y, each));
      return gradients(sum(y * y), in);
    });
    const Tensor x = randn({5, kWidth}).to(device).eval();
    const MemoryStats before = memory_stats(device);
    const std::vector<float> found = slopes({x})[0].to_vector<float>();
    EXPECT_LT(memory_stats(device).in_use_bytes - before.in_use_bytes, 3 * kUnpacked)
        << device.id();
    // Again, from the recorded plan, and by the CPU.
    EXPECT_EQ(slopes({x})[0].to_vector<float>(), found) << device.id();
    for (Tensor& each : weights) each = each.to(Device::cpu());
    const Tensor near = x.to(Device::cpu());
    Tensor y = near;
    for (const Tensor& each : weights) y = tanh(linear(y, dequantise(each)));
    const std::vector<float> right =
        gradients(sum(y * y), std::span(&near, 1))[0].to_vector<float>();
    double error = 0, power = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      error += std::pow(found[i] - right[i], 2.0);
      power += std::pow(right[i], 2.0);
    }
    EXPECT_LT(error, 1e-3 * power) << device.id();
  }
}

}  // namespace
}  // namespace prism
