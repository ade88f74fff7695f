// Tests the number of texts in a step against models of step times.
#include "llm/generate/texts_per_step.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace prism::llm {
namespace {

// A device on which a step takes seconds(rows). Above each of the sizes its time may jump.
struct FakeDevice {
  std::vector<int64_t> sizes;
  std::function<double(int64_t rows)> seconds;
  bool pads = true;  // to the next size
  int64_t padded(int64_t rows) const {
    const auto size = std::ranges::lower_bound(sizes, rows);
    return size == sizes.end() || !pads ? rows : *size;
  }
  std::vector<int64_t> smaller(int64_t rows) const {
    std::vector<int64_t> below;
    for (const int64_t size : sizes)
      if (size < rows) below.insert(below.begin(), size);
    return below;
  }
};

// Tokens per second of so many texts, over this many steps.
double rate(const FakeDevice& device, TextsPerStep& choice, int64_t texts, int64_t steps) {
  double seconds = 0, tokens = 0;
  int64_t size = 0, alike = 0;
  for (int64_t done = 0; done < steps;) {
    const TextsPerStep::Turn turn =
        choice.choose(texts, device.padded(texts), device.smaller(texts));
    const int64_t rows = device.padded(turn.texts);
    if (std::exchange(size, turn.texts) != turn.texts) alike = 0;
    for (int64_t i = 0; i < std::min(turn.steps, steps - done); ++i) {
      seconds += device.seconds(rows);
      tokens += static_cast<double>(turn.texts);
      if (++alike % TextsPerStep::kTrialSteps == 0) choice.learn(rows, device.seconds(rows));
    }
    done += std::min(turn.steps, steps - done);
  }
  return tokens / seconds;
}

// In milliseconds. Like an H200 with an 8B Q4_K_M, where 16 texts took 4.6, 17 to 32 took 6.75 and
// 33 to 48 took 9.0; the other times are invented.
FakeDevice padding_device() {
  return {{1, 2, 4, 8, 16, 32, 64}, [](int64_t rows) {
            return rows <= 1    ? 1.5
                   : rows <= 2  ? 2.2
                   : rows <= 4  ? 2.9
                   : rows <= 8  ? 4.2
                   : rows <= 16 ? 4.6
                   : rows <= 32 ? 6.75
                                : 9.0;
          }};
}

TEST(TextsPerStep, TheTotalNeverFallsAsTextsAreAdded) {
  const FakeDevice device = padding_device();
  TextsPerStep together;
  double before = 0;
  for (int64_t texts = 1; texts <= 64; ++texts) {
    // New texts come while others run, or all at once.
    TextsPerStep alone;
    for (TextsPerStep* const each : {&together, &alone}) {
      rate(device, *each, texts, 64);
      const double now = rate(device, *each, texts, 4096);
      EXPECT_GT(now, 0.995 * before) << texts;
      if (each == &alone) before = std::max(before, now);
    }
  }
  EXPECT_NEAR(before, 64 / 9.0, 1e-6);
}

TEST(TextsPerStep, TakesTheFullStepWhereOneMoreTextCostsAJump) {
  const FakeDevice device = padding_device();
  TextsPerStep choice;
  for (const auto& [texts, chosen] : std::vector<std::pair<int64_t, int64_t>>{{16, 16},
                                                                              {17, 16},
                                                                              {22, 16},
                                                                              {24, 24},
                                                                              {32, 32},
                                                                              {33, 32},
                                                                              {42, 32},
                                                                              {44, 44},
                                                                              {64, 64}}) {
    rate(device, choice, texts, 64);
    EXPECT_EQ(choice.choose(texts, device.padded(texts), device.smaller(texts)).texts, chosen)
        << texts;
  }
}

TEST(TextsPerStep, TakesAllWhereChangesOfTurnsCostMore) {
  // 16 of 17 texts give more tokens per second than 17, but only without the changes.
  for (const auto& [scale, chosen] : {std::pair{1.0, 16}, {0.002, 17}}) {
    const double few = scale * 4.6e-3, more = scale * 6.75e-3;
    const FakeDevice device{{16, 32}, [&](int64_t rows) { return rows <= 16 ? few : more; }};
    TextsPerStep choice;
    rate(device, choice, 17, 64);
    EXPECT_EQ(choice.choose(17, 32, device.smaller(17)).texts, chosen) << scale;
  }
}

TEST(TextsPerStep, TakesAllWhereTimesAreSmooth) {
  const FakeDevice device{
      {4, 8, 16}, [](int64_t rows) { return 4.0 + static_cast<double>(rows); }, false};
  for (const int64_t texts : {3, 5, 7, 9, 15, 17, 31, 40}) {
    TextsPerStep choice;
    rate(device, choice, texts, 64);
    const TextsPerStep::Turn turn = choice.choose(texts, texts, device.smaller(texts));
    EXPECT_EQ(turn.texts, texts);
    EXPECT_GE(turn.steps, 64) << "trials cost time";
  }
  // Without a jump below, or with few texts, there is nothing to try.
  EXPECT_EQ(TextsPerStep().choose(3, 4, std::vector<int64_t>{2, 1}).steps, INT64_MAX);
  EXPECT_EQ(TextsPerStep().choose(3, 3, {}).steps, INT64_MAX);
}

TEST(TextsPerStep, FollowsADeviceWhoseTimesChange) {
  FakeDevice device = padding_device();
  TextsPerStep choice;
  rate(device, choice, 17, 64);
  EXPECT_EQ(choice.choose(17, 32, device.smaller(17)).texts, 16);
  device.seconds = [](int64_t) { return 5.0; };
  rate(device, choice, 17, 4096);
  EXPECT_EQ(choice.choose(17, 32, device.smaller(17)).texts, 17);
}

}  // namespace
}  // namespace prism::llm
