// Tests scaled rotary frequencies against the published rules, computed by hand.
#include "prism/rope_scaling.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "prism/error.h"

namespace prism {
namespace {

using Kind = RopeScaling::Kind;

TEST(RopeScaling, PlainLinearAndDivisors) {
  const auto plain = rope_frequencies(128, 10000);
  ASSERT_EQ(plain.frequencies.size(), 64u);
  EXPECT_EQ(plain.magnitude, 1.0f);
  for (int i = 0; i < 64; ++i) EXPECT_FLOAT_EQ(plain.frequencies[i], std::pow(10000.0, -i / 64.0));
  const auto linear = rope_frequencies(128, 10000, {.kind = Kind::linear, .factor = 4});
  for (int i = 0; i < 64; ++i) EXPECT_FLOAT_EQ(linear.frequencies[i], plain.frequencies[i] / 4);
  std::vector<float> divisors(64, 2.0f);
  const auto divided = rope_frequencies(128, 10000, {}, divisors);
  for (int i = 0; i < 64; ++i) EXPECT_FLOAT_EQ(divided.frequencies[i], plain.frequencies[i] / 2);
}

TEST(RopeScaling, Llama3KeepsShortWavesAndDividesLongOnes) {
  const RopeScaling scaling{.kind = Kind::llama3, .factor = 8, .original_context = 8192};
  const auto plain = rope_frequencies(128, 500000);
  const auto scaled = rope_frequencies(128, 500000, scaling);
  int kept = 0, divided = 0, between = 0;
  for (int i = 0; i < 64; ++i) {
    const double frequency = std::pow(500000.0, -i / 64.0);
    const double wave = 2 * std::numbers::pi / frequency;
    if (wave < 8192 / 4.0) {
      ++kept;
      EXPECT_FLOAT_EQ(scaled.frequencies[i], plain.frequencies[i]);
    } else if (wave > 8192.0) {
      ++divided;
      EXPECT_FLOAT_EQ(scaled.frequencies[i], plain.frequencies[i] / 8);
    } else {
      ++between;
      const double smooth = (8192 / wave - 1) / (4 - 1);
      EXPECT_FLOAT_EQ(scaled.frequencies[i], (1 - smooth) * frequency / 8 + smooth * frequency);
    }
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(divided, 20);
  EXPECT_GT(between, 2);
}

TEST(RopeScaling, YarnBlendsBetweenItsBounds) {
  const RopeScaling scaling{.kind = Kind::yarn, .factor = 4, .original_context = 4096};
  const auto plain = rope_frequencies(128, 10000);
  const auto scaled = rope_frequencies(128, 10000, scaling);
  // 128 ln(4096 / (32 2 pi)) / (2 ln 10000) = 20.9 and 128 ln(4096 / (2 pi)) / (2 ln 10000) = 45.03
  for (int i = 0; i <= 20; ++i) EXPECT_FLOAT_EQ(scaled.frequencies[i], plain.frequencies[i]);
  for (int i = 46; i < 64; ++i) EXPECT_FLOAT_EQ(scaled.frequencies[i], plain.frequencies[i] / 4);
  const double share = (33 - 20) / 26.0;
  EXPECT_FLOAT_EQ(scaled.frequencies[33],
                  plain.frequencies[33] * (1 - share) + plain.frequencies[33] / 4 * share);
  EXPECT_FLOAT_EQ(scaled.magnitude, 0.1 * std::log(4.0) + 1);
  RopeScaling own = scaling;
  own.attention_factor = 1.5;
  EXPECT_EQ(rope_frequencies(128, 10000, own).magnitude, 1.5f);
}

TEST(RopeScaling, RefusesWhatMakesNoSense) {
  EXPECT_THROW(rope_frequencies(0, 10000), Error);
  EXPECT_THROW(rope_frequencies(7, 10000), Error);
  EXPECT_THROW(rope_frequencies(8, 1), Error);
  EXPECT_THROW(rope_frequencies(8, 10000, {.kind = Kind::linear, .factor = 0}), Error);
  EXPECT_THROW(rope_frequencies(8, 10000, {.kind = Kind::yarn, .factor = 2}), Error);
  const std::vector<float> three(3, 1.0f);
  EXPECT_THROW(rope_frequencies(8, 10000, {}, three), Error);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), kInfinity, -kInfinity, 0.0, -1.0}) {
    EXPECT_THROW(rope_frequencies(8, bad), Error);
    EXPECT_THROW(rope_frequencies(8, 10000, {.kind = Kind::linear, .factor = bad}), Error);
    const std::vector<float> divisors = {1, 1, static_cast<float>(bad), 1};
    EXPECT_THROW(rope_frequencies(8, 10000, {}, divisors), Error);
  }
  EXPECT_THROW(rope_frequencies(2, 10000, {}, std::vector<float>{1e-45f}), Error);  // overflows
}

}  // namespace
}  // namespace prism
