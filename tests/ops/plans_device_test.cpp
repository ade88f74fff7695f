// Tests plans on every device found: shared memory of temporaries, ops that overwrite a dead input
// and recorded replays give the same bits as a plan without sharing. `make test-devices` runs it
// under Vulkan's synchronisation validation.
//
// PRISM_RANDOM_SEED repeats a run.
#include <cmath>
#include <iostream>

#include <gtest/gtest.h>

#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "support/devices/devices.h"
#include "support/ops/random_graph.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

using test::Engine;
using test::kGraphOutputs;

std::vector<std::vector<std::byte>> results_of(Plan& plan) {
  std::vector<std::vector<std::byte>> results;
  for (size_t i = 0; i < kGraphOutputs; ++i) {
    const Storage& storage = *plan.output(i);
    write_storage(storage, 0, std::vector<std::byte>(storage.bytes, std::byte{0xCD}));
  }
  plan.run();
  for (size_t i = 0; i < kGraphOutputs; ++i) {
    const Storage& storage = *plan.output(i);
    results.emplace_back(storage.bytes);
    read_storage(storage, 0, results.back());
  }
  return results;
}

// Counts steps whose output takes the memory of an input.
size_t taken_over(const Plan& plan) {
  size_t count = 0;
  for (const PlanStep& step : plan.steps())
    for (const DeviceView& input : step.inputs)
      count += step.op && input.slot == step.outputs[0].slot;
  return count;
}

TEST(PlansDevice, SharedMemoryChangesNothing) {
  const uint64_t seed = test::seed_of_run();
  for (const Device& device : test::every_device()) {
    Engine engine(seed);
    size_t over = 0;
    // Every graph has its own kernels, which software devices compile slowly.
    const int graphs = device.info().is_cpu ? 40 : 8;
    for (int graph = 0; graph < graphs; ++graph) {
      SCOPED_TRACE(device.id() + ", graph " + std::to_string(graph));
      const auto outputs = test::random_graph(engine, test::random_inputs(engine, device));
      PlanOptions apart;
      apart.reuse_memory = false;
      Plan plan(outputs), reference(outputs, {}, apart);
      over += taken_over(plan);
      EXPECT_EQ(taken_over(reference), 0u);
      const auto wanted = results_of(reference);
      for (int run = 0; run < 3; ++run)  // the third replays the recording of the second
        ASSERT_EQ(results_of(plan), wanted) << "run " << run << "\n" << plan.explain();
    }
    std::cout << device.id() << ": " << over << " steps wrote over an input" << std::endl;
  }
}

// A chain between reductions, with types and layouts that can and cannot be overwritten.
TEST(PlansDevice, ChainsWriteOverWhatNobodyNeeds) {
  for (const Device& device : test::every_device()) {
    constexpr int64_t kRows = 37, kColumns = 53;
    const Tensor rows = arange(kRows, DType::f32, device).reshape({kRows, 1}) * 0.1;
    const Tensor x = rows.expand({kRows, kColumns}).contiguous();
    x.eval();
    const auto steps_over = [&](const Tensor& y) {
      Plan plan(std::span(&y, 1));
      const size_t count = taken_over(plan);
      plan.run();
      return count;
    };
    // Only the chain uses the rolled tensor.
    const auto turned = [&] { return roll(x, 1, 0); };
    const Tensor chained = roll(tanh(turned()) * 2.0, 1, 0);
    EXPECT_EQ(steps_over(chained), 1u) << device.id();
    const Tensor again = turned();
    EXPECT_EQ(steps_over(roll(tanh(again), 1, 0) + again), 0u) << device.id() << ": still needed";
    EXPECT_EQ(steps_over(roll(cast(turned(), DType::f16), 1, 0)), 0u)
        << device.id() << ": another size";
    const std::vector<double> got = chained.to_doubles();
    for (size_t r = 0; r < kRows; ++r) {
      const double wanted = 2 * std::tanh(0.1 * static_cast<double>((r + kRows - 2) % kRows));
      for (size_t c = 0; c < kColumns; ++c)
        EXPECT_NEAR(got[r * kColumns + c], wanted, 1e-6) << device.id() << " " << r << ", " << c;
    }
  }
}

}  // namespace
}  // namespace prism
