// Plans in random orders: whatever order the recorded dependencies allow gives the same results,
// with memory poisoned as soon as nothing needs it.
//
// PRISM_RANDOM_SEED repeats a run.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/join.h"
#include "ops/reduce.h"
#include "tensor/compile.h"
#include "tensor/plan.h"

namespace prism {
namespace {

using Engine = std::mt19937_64;

constexpr size_t kOutputs = 3;  // of every graph

uint64_t seed_of_run() {
  const char* text = std::getenv("PRISM_RANDOM_SEED");
  const uint64_t given = text ? std::strtoull(text, nullptr, 10) : 0;
  const uint64_t seed = given != 0 ? given : std::random_device{}();
  std::cout << "PRISM_RANDOM_SEED=" << seed << std::endl;
  return seed;
}

size_t below(Engine& engine, size_t count) {
  return std::uniform_int_distribution<size_t>(0, count - 1)(engine);
}

Tensor random_input(Engine& engine, const Shape& shape) {
  std::uniform_real_distribution<double> draw(-2, 2);
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = draw(engine);
  return from_doubles(values, shape, DType::f32, Device::cpu());
}

// One more tensor of the same shape out of some that are there, by an op drawn anew.
Tensor grown(Engine& engine, const std::vector<Tensor>& have) {
  const Tensor &a = have[below(engine, have.size())], &b = have[below(engine, have.size())];
  const int64_t rows = a.size(0), columns = a.size(1);
  switch (below(engine, 10)) {
    case 0:
      return tanh(a) + b;
    case 1:
      return a * b;
    case 2:
      return silu(a);
    case 3:
      return a - mean(b, {-1}, true);
    case 4:
      return tanh(b) + sum(a, {0}, true) * 0.125;
    case 5:
      return maximum(a, max(b, {-1}, true) * 0.5);
    case 6: {
      std::vector<double> rows_wanted;
      for (int64_t i = 0; i < rows; ++i)
        rows_wanted.push_back(static_cast<double>(below(engine, static_cast<size_t>(rows))));
      return gather_rows(a, from_doubles(rows_wanted, {rows}, DType::i32, Device::cpu()));
    }
    case 7:
      return concat({a.slice(1, 0, columns / 2), b.slice(1, columns / 2, columns)}, 1);
    case 8:
      return a.transpose().contiguous().reshape({rows, columns}) + 1.0;
    default:
      return roll(a, 1, 0) * sum(b);
  }
}

std::vector<Tensor> random_inputs(Engine& engine) {
  const int64_t lengths[] = {1, 2, 5, 7, 33, 130};
  const Shape shape = {lengths[below(engine, 6)], lengths[below(engine, 6)]};
  return {random_input(engine, shape), random_input(engine, shape), random_input(engine, shape)};
}

std::vector<Tensor> random_graph(Engine& engine, std::span<const Tensor> inputs) {
  std::vector<Tensor> have(inputs.begin(), inputs.end());
  const size_t ops = 4 + below(engine, 14);
  for (size_t i = 0; i < ops; ++i) have.push_back(grown(engine, have));
  return {have.back(), have[have.size() - 2], sum(have[have.size() - 3], {-1})};
}

// An order that the dependencies allow, each such order possible.
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

// What the orders of some plans showed.
struct Seen {
  size_t other_orders = 0;  // than the plan's own
  size_t noticed = 0;       // wrong orders that gave wrong results
};

// A plan whose inputs are bound.
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
  // An order against the dependencies must show, or this test sees nothing.
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
