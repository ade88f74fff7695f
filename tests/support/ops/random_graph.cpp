// Draws the ops of random graphs.
#include "support/ops/random_graph.h"

#include <cstdlib>
#include <iostream>

#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/join.h"
#include "prism/ops/reduce.h"
#include "support/seed.h"

namespace prism::test {

uint64_t seed_of_run() {
  const char* text = std::getenv("PRISM_RANDOM_SEED");
  const uint64_t given = text ? std::strtoull(text, nullptr, 10) : 0;
  const uint64_t seed = given != 0 ? given : test_seed();
  std::cout << "PRISM_RANDOM_SEED=" << seed << std::endl;
  return seed;
}

size_t below(Engine& engine, size_t count) {
  return std::uniform_int_distribution<size_t>(0, count - 1)(engine);
}

namespace {

Tensor random_input(Engine& engine, const Shape& shape, const Device& device) {
  std::uniform_real_distribution<double> draw(-2, 2);
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = draw(engine);
  return from_doubles(values, shape, DType::f32, device);
}

// Another tensor of the same shape, computed from existing ones by a random op.
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
      return gather_rows(a, from_doubles(rows_wanted, {rows}, DType::i32, a.device()));
    }
    case 7:
      return concat({a.slice(1, 0, columns / 2), b.slice(1, columns / 2, columns)}, 1);
    case 8:
      return a.transpose().contiguous().reshape({rows, columns}) + 1.0;
    default:
      return roll(a, 1, 0) * sum(b);
  }
}

}  // namespace

std::vector<Tensor> random_inputs(Engine& engine, const Device& device) {
  const int64_t lengths[] = {1, 2, 5, 7, 33, 130};
  const Shape shape = {lengths[below(engine, 6)], lengths[below(engine, 6)]};
  return {random_input(engine, shape, device), random_input(engine, shape, device),
          random_input(engine, shape, device)};
}

std::vector<Tensor> random_graph(Engine& engine, std::span<const Tensor> inputs) {
  std::vector<Tensor> have(inputs.begin(), inputs.end());
  const size_t ops = 4 + below(engine, 14);
  for (size_t i = 0; i < ops; ++i) have.push_back(grown(engine, have));
  return {have.back(), have[have.size() - 2], sum(have[have.size() - 3], {-1})};
}

}  // namespace prism::test
