// Tests the error of the software exp, log, sin, cos and tanh, in ulp.
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
using Truth = double (*)(double);

// The lowered function over all inputs, four per lane.
std::vector<float> computed(Unary function, std::vector<float> inputs) {
  inputs.resize((inputs.size() + 255) / 256 * 256);
  const Kernel k = kernel("math", 64, [&] {
    const auto x = in("x", f32);
    const auto y = out("y", f32);
    y.store(global_id() * 4u, function(x.load(global_id() * 4u, 4)));
  });
  ir::Capabilities caps = full_capabilities();
  caps.precise_math = false;
  const Launch launch{
      {static_cast<uint32_t>(inputs.size() / 256), 1, 1}, {}, {bytes_of(inputs), bytes_of(inputs)}};
  return values_of<float>(interpreted_lowered(k, launch, caps)[1]);
}

// The distance between neighbouring floats at this magnitude.
double ulp_at(double magnitude) {
  if (magnitude < 0x1p-126) return 0x1p-149;
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

// `count` numbers between the two, evenly spaced in the order of floats, so that every magnitude is
// covered.
std::vector<float> by_magnitude(float from, float to, size_t count) {
  const uint32_t first = std::bit_cast<uint32_t>(from), last = std::bit_cast<uint32_t>(to);
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(std::bit_cast<float>(
        static_cast<uint32_t>(first + uint64_t(last - first) * i / (count - 1))));
  return values;
}

std::vector<float> evenly(double from, double to, size_t count) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(from + (to - from) * static_cast<double>(i) /
                                                   static_cast<double>(count - 1)));
  return values;
}

struct Worst {
  double ulp = 0;
  float at = 0;
};

// absolute: in ulp of 1, for functions with zeros far from the origin.
Worst worst(Unary function, Truth truth, const std::vector<float>& inputs, bool absolute = false) {
  const std::vector<float> found = computed(function, inputs);
  Worst result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double right = truth(inputs[i]);
    if (std::abs(right) > std::numeric_limits<float>::max()) {
      EXPECT_EQ(found[i], right > 0 ? HUGE_VALF : -HUGE_VALF) << "at " << inputs[i];
      continue;
    }
    const double off =
        std::abs(double(found[i]) - right) / (absolute ? 0x1p-23 : ulp_at(std::abs(right)));
    if (!(off <= result.ulp)) result = {off, inputs[i]};
  }
  return result;
}

void expect_within_4(const char* name, Unary function, Truth truth,
                     std::vector<std::vector<float>> sweeps, bool absolute = false) {
  Worst most;
  for (const auto& inputs : sweeps) {
    std::vector<float> both = inputs;
    for (float x : inputs) both.push_back(-x);
    const Worst w = worst(function, truth, name[0] == 'l' ? inputs : both, absolute);
    if (!(w.ulp <= most.ulp)) most = w;
  }
  std::printf("%s: at most %.2f ulp from the truth, at %.9g\n", name, most.ulp,
              static_cast<double>(most.at));
  ::testing::Test::RecordProperty(name, std::to_string(most.ulp));
  EXPECT_LE(most.ulp, 4.0) << name << " at " << most.at;
}

constexpr size_t kPoints = 200000;

TEST(LowerMath, ExponentialsWithin4Ulp) {
  expect_within_4(
      "exp", exp, std::exp,
      {evenly(0, 89, kPoints), by_magnitude(1e-10f, 110.0f, kPoints), evenly(86, 105, kPoints)});
  expect_within_4(
      "exp2", exp2, std::exp2,
      {evenly(0, 128, kPoints), by_magnitude(1e-10f, 160.0f, kPoints), evenly(125, 151, kPoints)});
}

TEST(LowerMath, LogarithmsWithin4Ulp) {
  const float least = std::bit_cast<float>(1u), most = std::numeric_limits<float>::max();
  expect_within_4("log", log, std::log,
                  {by_magnitude(least, most, 2 * kPoints), evenly(0.5, 2, kPoints),
                   by_magnitude(0.999f, 1.001f, kPoints)});
  expect_within_4("log2", log2, std::log2,
                  {by_magnitude(least, most, 2 * kPoints), evenly(0.5, 2, kPoints),
                   by_magnitude(0.999f, 1.001f, kPoints)});
}

TEST(LowerMath, SineAndCosineWithin4UlpOfOne) {
  expect_within_4("sin", sin, std::sin,
                  {evenly(0, 131072, kPoints), evenly(0, 10, kPoints),
                   by_magnitude(1e-20f, 131071.0f, kPoints)},
                  true);
  expect_within_4("cos", cos, std::cos,
                  {evenly(0, 131072, kPoints), evenly(0, 10, kPoints),
                   by_magnitude(1e-20f, 131071.0f, kPoints)},
                  true);
  // Without argument reduction, small results keep all their digits.
  expect_within_4("sine near zero", sin, std::sin, {by_magnitude(1e-30f, 0.78f, kPoints)});
}

TEST(LowerMath, TanhWithin4Ulp) {
  expect_within_4(
      "tanh", tanh, std::tanh,
      {evenly(0, 12, kPoints), by_magnitude(1e-30f, 100.0f, kPoints), evenly(0.6, 0.65, kPoints)});
}

TEST(LowerMath, Edges) {
  const float infinity = HUGE_VALF, nan = std::nanf("");
  const std::vector<float> inputs = {0.0f, -0.0f, infinity, -infinity, nan, -1.0f};
  const auto expect = [&](Unary function, const std::vector<float>& right) {
    const std::vector<float> found = computed(function, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (std::isnan(right[i]))
        EXPECT_TRUE(std::isnan(found[i])) << "at " << inputs[i] << ": " << found[i];
      else
        EXPECT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(right[i]))
            << "at " << inputs[i] << ": " << found[i];
    }
  };
  expect(exp, {1, 1, infinity, 0, nan, computed(exp, {-1.0f})[0]});
  expect(exp2, {1, 1, infinity, 0, nan, 0.5f});
  expect(log, {-infinity, -infinity, infinity, nan, nan, nan});
  expect(log2, {-infinity, -infinity, infinity, nan, nan, nan});
  expect(tanh, {0.0f, -0.0f, 1, -1, nan, computed(tanh, {-1.0f})[0]});
  expect(sin, {0.0f, -0.0f, nan, nan, nan, computed(sin, {-1.0f})[0]});
  expect(cos, {1, 1, nan, nan, nan, computed(cos, {-1.0f})[0]});
}

TEST(LowerMath, PowersOfTwoAreExact) {
  std::vector<float> inputs;
  for (int n = -149; n < 128; ++n) inputs.push_back(static_cast<float>(n));
  const std::vector<float> found = computed(exp2, inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(found[i], std::ldexp(1.0f, static_cast<int>(inputs[i]))) << inputs[i];
}

}  // namespace
}  // namespace prism
