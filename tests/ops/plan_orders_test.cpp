// Tests plans in random orders: every order that the dependencies allow gives the same results,
// with memory poisoned as soon as it is dead.
//
// PRISM_RANDOM_SEED repeats a run.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "prism/compile.h"
#include "support/ops/random_graph.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

using test::below;
using test::Engine;
using test::random_graph;
using test::seed_of_run;

constexpr size_t kOutputs = test::kGraphOutputs;

std::vector<Tensor> random_inputs(Engine& engine) {
  return test::random_inputs(engine, Device::cpu());
}

// A random order that respects the dependencies; every such order is possible.
std::vector<uint32_t> random_order(Engine& engine, const Plan& plan) {
  const auto before = plan.dependencies();
  std::vector<uint32_t> order, ready;
  std::vector<size_t> missing;
  for (uint32_t s = 0; s < before.size(); ++s) {
    missing.push_back(before[s].size());
    if (before[s].empty()) ready.push_back(s);
  }
  while (!ready.empty()) {
    std::swap(ready[below(engine, ready.size())], ready.back());
    const uint32_t step = ready.back();
    ready.pop_back();
    order.push_back(step);
    for (uint32_t later = step + 1; later < before.size(); ++later) {
      if (std::ranges::find(before[later], step) == before[later].end()) continue;
      if (--missing[later] == 0) ready.push_back(later);
    }
  }
  return order;
}

std::vector<std::vector<std::byte>> results_of(const Plan& plan, size_t outputs) {
  std::vector<std::vector<std::byte>> results;
  for (size_t i = 0; i < outputs; ++i) {
    const Storage& storage = *plan.output(i);
    results.emplace_back(storage.host.get(), storage.host.get() + storage.bytes);
  }
  return results;
}

void poison_outputs(const Plan& plan, size_t outputs) {
  for (size_t i = 0; i < outputs; ++i) {
    const Storage& storage = *plan.output(i);
    write_storage(storage, 0, std::vector<std::byte>(storage.bytes, std::byte{0xCD}));
  }
}

// What the orders of several plans showed.
struct Seen {
  size_t other_orders = 0;  // orders that differ from the plan's
  size_t noticed = 0;       // wrong orders that gave wrong results
};

// Requires a plan whose inputs are bound.
void check_orders(Engine& engine, Plan& plan, Seen& seen) {
  poison_outputs(plan, kOutputs);
  plan.run();
  const auto wanted = results_of(plan, kOutputs);
  std::vector<uint32_t> in_order(plan.steps().size());
  std::iota(in_order.begin(), in_order.end(), 0);
  for (int run = 0; run < 8; ++run) {
    const std::vector<uint32_t> order = random_order(engine, plan);
    ASSERT_EQ(order.size(), plan.steps().size());
    seen.other_orders += order != in_order;
    poison_outputs(plan, kOutputs);
    plan.run_in_order(order, true);
    ASSERT_EQ(results_of(plan, kOutputs), wanted) << "run " << run << "\n" << plan.explain();
  }
  // An order that violates the dependencies must be noticed; otherwise this test checks nothing.
  poison_outputs(plan, kOutputs);
  std::ranges::reverse(in_order);
  plan.run_in_order(in_order, true);
  seen.noticed += results_of(plan, kOutputs) != wanted;
}

TEST(PlanOrders, EveryAllowedOrderOfAGraphGivesTheSame) {
  Engine engine(seed_of_run());
  Seen seen;
  for (int graph = 0; graph < 60; ++graph) {
    SCOPED_TRACE(graph);
    PlanOptions options;
    options.fuse = below(engine, 4) != 0;
    Plan plan(random_graph(engine, random_inputs(engine)), {}, options);
    check_orders(engine, plan, seen);
  }
  EXPECT_GT(seen.other_orders, 40u);
  EXPECT_GT(seen.noticed, 30u);
}

TEST(PlanOrders, EveryAllowedOrderOfACompiledFunctionGivesTheSame) {
  Engine engine(seed_of_run());
  Seen seen;
  for (int graph = 0; graph < 30; ++graph) {
    SCOPED_TRACE(graph);
    CompiledFunction function =
        compile([&](std::span<const Tensor> inputs) { return random_graph(engine, inputs); });
    const std::vector<Tensor> inputs = random_inputs(engine);
    Plan& plan = function.plan(inputs);
    std::vector<std::shared_ptr<Storage>> storages;
    for (const Tensor& each : inputs) storages.push_back(each.node()->storage[0]);
    plan.run(storages);  // binds them
    check_orders(engine, plan, seen);
  }
  EXPECT_GT(seen.other_orders, 20u);
  EXPECT_GT(seen.noticed, 15u);
}

}  // namespace
}  // namespace prism
