// Random tensor graphs for tests of plans: chains, reductions, gathers, joins and views of a few
// matrices of one shape.
#pragma once

#include <random>
#include <span>
#include <vector>

#include "prism/tensor.h"

namespace prism::test {

using Engine = std::mt19937_64;

inline constexpr size_t kGraphOutputs = 3;  // outputs per graph

// PRISM_RANDOM_SEED, or a new one; printed.
uint64_t seed_of_run();

size_t below(Engine& engine, size_t count);
std::vector<Tensor> random_inputs(Engine& engine, const Device& device);
std::vector<Tensor> random_graph(Engine& engine, std::span<const Tensor> inputs);

}  // namespace prism::test
