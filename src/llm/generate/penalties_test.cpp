// Tests the penalties against straightforward quadratic implementations.
#include "prism/llm/penalties.h"
#include "support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace prism::llm {
namespace {

class PenaltiesTest : public ::testing::Test {
 protected:
  std::vector<float> logits(size_t count) {
    std::normal_distribution<float> normal(0, 3);
    std::vector<float> all(count);
    for (float& each : all) each = normal(random_);
    return all;
  }
  std::vector<int32_t> tokens(size_t count, int32_t vocabulary) {
    std::vector<int32_t> all(count);
    for (int32_t& each : all) each = static_cast<int32_t>(random_() % unsigned(vocabulary));
    return all;
  }
  const uint32_t seed_ = test_seed();
  std::mt19937 random_{seed_};
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};

TEST_F(PenaltiesTest, RepeatPresenceAndFrequency) {
  for (const int32_t window : {0, 1, 5, 100, -1}) {
    const auto before = logits(20);
    const auto history = tokens(37, 25);  // some are outside the vocabulary and ignored
    auto after = before;
    apply_penalties(after, history, {window, 1.3f, 0.4f, 0.25f});
    const size_t from = window < 0 || size_t(window) > history.size()
                            ? 0
                            : history.size() - static_cast<size_t>(window);
    for (int32_t token = 0; token < 20; ++token) {
      const auto times =
          std::count(history.begin() + static_cast<ptrdiff_t>(from), history.end(), token);
      double expected = before[static_cast<size_t>(token)];
      if (times > 0) {
        expected = expected > 0 ? expected / 1.3 : expected * 1.3;
        expected -= 0.4 + 0.25 * static_cast<double>(times);
      }
      EXPECT_NEAR(after[static_cast<size_t>(token)], expected, 1e-5) << token << " " << window;
    }
  }
}

// The longest repetition that each token would extend, by comparing all pairs of positions.
std::vector<float> slow_dry(std::vector<float> logits, std::vector<int32_t> history,
                            const DryOptions& options, const std::unordered_set<int32_t>& stop) {
  if (options.window >= 0 && size_t(options.window) < history.size())
    history.erase(history.begin(), history.end() - options.window);
  const int n = static_cast<int>(history.size());
  std::vector<int> longest(logits.size(), 0);
  for (int end = 0; end + 1 < n; ++end) {
    int length = 0;
    while (end - length >= 0 && history[size_t(end - length)] == history[size_t(n - 1 - length)] &&
           !stop.contains(history[size_t(end - length)]))
      ++length;
    int& known = longest[size_t(history[size_t(end + 1)])];
    known = std::max(known, length);
  }
  for (size_t i = 0; i < logits.size(); ++i)
    if (longest[i] >= options.allowed_length)
      logits[i] -= static_cast<float>(options.multiplier *
                                      std::pow(options.base, longest[i] - options.allowed_length));
  return logits;
}

TEST_F(PenaltiesTest, DryFindsTheLongestRepetition) {
  for (int round = 0; round < 200; ++round) {
    const auto before = logits(6);
    const auto history = tokens(random_() % 60, 3);  // few distinct tokens repeat often
    const DryOptions options = {0.8f, 1.3f, int32_t(1 + random_() % 3),
                                int32_t(random_() % 2 ? -1 : 20)};
    const std::unordered_set<int32_t> stop =
        random_() % 2 ? std::unordered_set<int32_t>{2} : std::unordered_set<int32_t>{};
    auto after = before;
    apply_dry(after, history, options, stop);
    const auto expected = slow_dry(before, history, options, stop);
    for (size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(after[i], expected[i], 1e-4 * (1 + std::abs(expected[i])));
  }
}

TEST_F(PenaltiesTest, DryOfALongRepetitionStaysANumber) {
  std::vector<float> values(4, 0.0f);
  apply_dry(values, std::vector<int32_t>(20000, 1), {1, 4, 2, -1}, {});
  EXPECT_TRUE(std::isfinite(values[1]));
  EXPECT_LT(values[1], -1e20f);
  EXPECT_EQ(values[0], 0.0f);
}

}  // namespace
}  // namespace prism::llm
