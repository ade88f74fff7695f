// Tests the error of the software f64 functions, in ulp.
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "prism/kernel.h"
#include "support/kernels/interpreted.h"
#include "support/kernels/lowering.h"

namespace prism {
namespace {

using namespace dsl;
using namespace test;

using Unary = Value (*)(Operand);
using Truth = long double (*)(long double);

std::vector<double> computed(Unary function, std::vector<double> inputs, uint32_t lanes = 1) {
  const size_t count = inputs.size();
  inputs.resize((count + 255) / 256 * 256);
  const Kernel k = kernel("math", 64, [&] {
    const auto x = in("x", f64);
    const auto y = out("y", f64);
    y.store(global_id() * lanes, function(x.load(global_id() * lanes, lanes)));
  });
  ir::Capabilities caps = full_capabilities();
  caps.precise_math = false;
  const Launch launch{{static_cast<uint32_t>(inputs.size() / 64 / lanes), 1, 1},
                      {},
                      {bytes_of(inputs), bytes_of(inputs)}};
  std::vector<double> found = values_of<double>(interpreted_lowered(k, launch, caps)[1]);
  found.resize(count);
  return found;
}

std::vector<double> by_magnitude(double from, double to, size_t count) {
  const uint64_t first = std::bit_cast<uint64_t>(from), last = std::bit_cast<uint64_t>(to);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(std::bit_cast<double>(first + (last - first) / (count - 1) * i));
  return values;
}

std::vector<double> evenly(double from, double to, size_t count) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(from + (to - from) * static_cast<double>(i) / static_cast<double>(count - 1));
  return values;
}

// absolute: in ulp of 1.
void expect_within(double ulps, const char* name, Unary function, Truth truth,
                   const std::vector<std::vector<double>>& sweeps, bool absolute = false) {
  double most = 0, at = 0;
  for (std::vector<double> inputs : sweeps) {
    if (name[0] != 'l')
      for (size_t i = 0, n = inputs.size(); i < n; ++i) inputs.push_back(-inputs[i]);
    const std::vector<double> found = computed(function, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const long double right = truth(inputs[i]);
      const auto rounded = static_cast<double>(right);
      if (std::isinf(rounded)) {
        EXPECT_EQ(found[i], rounded) << name << " at " << inputs[i];
        continue;
      }
      const double ulp = absolute ? 0x1p-52
                         : rounded == 0
                             ? 0x1p-1074
                             : std::max(0x1p-1074, std::ldexp(1.0, std::ilogb(rounded) - 52));
      const auto off = static_cast<double>(std::abs(found[i] - right) / ulp);
      if (!(off <= most)) most = off, at = inputs[i];
    }
  }
  std::printf("%s: at most %.2f ulp from the truth, at %.17g\n", name, most, at);
  EXPECT_LE(most, ulps) << name << " at " << at;
}

constexpr size_t kPoints = 40000;

TEST(LowerMathF64, ExponentialsWithin3Ulp) {
  expect_within(
      3, "exp", exp, std::exp,
      {evenly(0, 709.7, kPoints), by_magnitude(1e-10, 800, kPoints), evenly(700, 746, kPoints)});
  expect_within(3, "exp2", exp2, std::exp2,
                {evenly(0, 1023.9, kPoints), by_magnitude(1e-10, 1200, kPoints)});
}

TEST(LowerMathF64, LogarithmsWithin3Ulp) {
  const double most = std::numeric_limits<double>::max();
  for (const auto& [name, function, truth] :
       {std::tuple<const char*, Unary, Truth>{"log", log, std::log}, {"log2", log2, std::log2}})
    expect_within(3, name, function, truth,
                  {by_magnitude(0x1p-1074, most, kPoints), evenly(0.5, 2, kPoints),
                   by_magnitude(0.999, 1.001, kPoints)});
}

TEST(LowerMathF64, SineAndCosineWithin3UlpOfOne) {
  const std::vector<std::vector<double>> sweeps = {
      evenly(0, 1048576, kPoints), evenly(0, 10, kPoints), by_magnitude(1e-20, 0x1p50, kPoints)};
  expect_within(3, "sin", sin, std::sin, sweeps, true);
  expect_within(3, "cos", cos, std::cos, sweeps, true);
  expect_within(3, "sine near zero", sin, std::sin, {by_magnitude(1e-30, 0.78, kPoints)});
}

TEST(LowerMathF64, SinesOfLargeNumbersAreBounded) {
  for (const Unary function : {Unary(sin), Unary(cos)})
    for (const double value : computed(function, by_magnitude(0x1p50, 1e308, 1000)))
      EXPECT_LE(std::abs(value), 1.0 + 1e-9);
}

TEST(LowerMathF64, TanhWithin4Ulp) {
  expect_within(4, "tanh", tanh, std::tanh,
                {evenly(0, 25, kPoints), by_magnitude(1e-30, 100, kPoints)});
}

TEST(LowerMathF64, VectorsLaneByLane) {
  const std::vector<double> inputs = evenly(-3, 3, 1024);
  for (const uint32_t lanes : {2u, 4u})
    EXPECT_EQ(computed(exp, inputs, lanes), computed(exp, inputs)) << lanes;
}

TEST(LowerMathF64, Edges) {
  const double infinity = HUGE_VAL, nan = std::nan("");
  const std::vector<double> inputs = {0.0, -0.0, infinity, -infinity, nan};
  const auto expect = [&](Unary function, const std::vector<double>& right) {
    const std::vector<double> found = computed(function, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (std::isnan(right[i]))
        EXPECT_TRUE(std::isnan(found[i])) << "at " << inputs[i] << ": " << found[i];
      else
        EXPECT_EQ(std::bit_cast<uint64_t>(found[i]), std::bit_cast<uint64_t>(right[i]))
            << "at " << inputs[i] << ": " << found[i];
    }
  };
  expect(exp, {1, 1, infinity, 0, nan});
  expect(exp2, {1, 1, infinity, 0, nan});
  expect(log, {-infinity, -infinity, infinity, nan, nan});
  expect(log2, {-infinity, -infinity, infinity, nan, nan});
  expect(tanh, {0.0, -0.0, 1, -1, nan});
  expect(sin, {0.0, -0.0, nan, nan, nan});
  expect(cos, {1, 1, nan, nan, nan});
}

}  // namespace
}  // namespace prism
