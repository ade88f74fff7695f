// Tests texts that take turns in decoding: they stay what they are together, advance alike, and
// begin and end while others wait for their turn.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "llm/generate/scheduler.h"
#include "support/devices/devices.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"

namespace prism::llm {
namespace {

using test::greedy;

class TurnsDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (path().empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  static std::string path() { return test::shared_model("stories260K"); }
  static const GgufFile& file() {
    static const GgufFile opened = GgufFile::open(path());
    return opened;
  }
  static Model load(const Device& device, int64_t slots, int64_t cache_positions = 0,
                    int64_t context = 128) {
    return Model::load(file(), {.placement = place_on(file(), device, context, DType::f32),
                                .slots = slots,
                                .cache_positions = cache_positions,
                                .cache_block = 8,
                                .batch_rows = 64});
  }
  static GenerationRequest request(const Tokenizer& tokenizer, size_t i, int64_t tokens) {
    static const std::vector<std::string> prompts = {"Once upon a time", "Lily and Tom", "The dog",
                                                     "One day a boy", "The big red ball"};
    GenerationRequest made{tokenizer.encode(prompts[i % prompts.size()]), greedy(tokens), {}};
    made.options.ignore_end = true;
    return made;
  }
};

TEST_F(TurnsDevice, TextsThatTakeTurnsAreTheSameAndAdvanceAlike) {
  for (const Device& device : test::every_device()) {
    SCOPED_TRACE(device.id());
    const Tokenizer tokenizer = Tokenizer::from(file());
    Model model = load(device, 5);
    Scheduler scheduler(model, tokenizer);
    std::vector<Generation> expected;
    for (size_t i = 0; i < 5; ++i) {
      const int64_t id = scheduler.add(request(tokenizer, i, 30));
      scheduler.run();
      expected.push_back(scheduler.take(id));
    }
    for (const int64_t most : {2, 1, 4}) {
      if (most != 2 && !device.info().is_cpu) continue;  // each needs kernels of its own
      SCOPED_TRACE(most);
      scheduler.set_most_decoding(most);
      std::map<int64_t, int64_t> written;
      std::vector<int64_t> ids;
      for (size_t i = 0; i < 5; ++i) {
        GenerationRequest each = request(tokenizer, i, 30);
        each.on_text = [&written, i](const TextPiece& piece) {
          written[static_cast<int64_t>(i)] += std::ssize(piece.tokens);
          return true;
        };
        ids.push_back(scheduler.add(std::move(each)));
      }
      while (scheduler.step()) {
        if (written.size() < 5) continue;  // prompts
        const auto [least, greatest] =
            std::ranges::minmax_element(written, {}, [](const auto& each) { return each.second; });
        EXPECT_LE(greatest->second - least->second, 2 * TextsPerStep::kTurnSteps);
      }
      for (size_t i = 0; i < 5; ++i)
        EXPECT_EQ(scheduler.take(ids[i]).tokens, expected[i].tokens) << i;
    }
  }
}

// Of the two texts that share a step, one keeps its row at a change of turns. With this context it
// has just filled it at one of the changes.
TEST_F(TurnsDevice, TextsThatOnlyTheContextLimitsAdvanceAlike) {
  for (const Device& device : test::every_device()) {
    SCOPED_TRACE(device.id());
    const Tokenizer tokenizer = Tokenizer::from(file());
    Model model = load(device, 3, 0, 38);
    Scheduler scheduler(model, tokenizer);
    scheduler.set_most_decoding(2);
    for (const int64_t limit : {int64_t{-1}, int64_t{1000}}) {
      SCOPED_TRACE(limit);
      std::map<int64_t, int64_t> written;
      std::vector<int64_t> ids;
      for (size_t i = 0; i < 3; ++i) {
        GenerationRequest each = request(tokenizer, i, limit);
        each.on_text = [&written, i](const TextPiece& piece) {
          written[static_cast<int64_t>(i)] += std::ssize(piece.tokens);
          return true;
        };
        ids.push_back(scheduler.add(std::move(each)));
      }
      while (scheduler.step()) {
        if (written.size() < 3 || scheduler.unfinished() < 3) continue;
        const auto [least, greatest] =
            std::ranges::minmax_element(written, {}, [](const auto& each) { return each.second; });
        EXPECT_LE(greatest->second - least->second, 2 * TextsPerStep::kTurnSteps);
      }
      for (const int64_t id : ids) EXPECT_EQ(scheduler.take(id).reason, StopReason::context);
    }
  }
}

TEST_F(TurnsDevice, TextsComeAndGoWhileOthersWaitForTheirTurn) {
  const Tokenizer tokenizer = Tokenizer::from(file());
  Model alone_model = load(Device::cpu(), 1);
  Scheduler alone(alone_model, tokenizer);
  // Blocks for about three of the texts, so that some are computed again.
  Model model = load(Device::cpu(), 4, 160);
  Scheduler scheduler(model, tokenizer);
  scheduler.set_most_decoding(3);
  std::map<int64_t, size_t> added;
  int64_t cancelled = -1;
  for (int step = 0; step < 400; ++step) {
    if (step % 9 == 0 && added.size() < 12) {
      const size_t i = added.size();
      added[scheduler.add(request(tokenizer, i, 10 + 3 * static_cast<int64_t>(i)))] = i;
    }
    if (step == 40) scheduler.cancel(cancelled = added.rbegin()->first);
    scheduler.step();
  }
  ASSERT_EQ(scheduler.unfinished(), 0u);
  for (const auto& [id, i] : added) {
    const Generation made = scheduler.take(id);
    const int64_t own = alone.add(request(tokenizer, i, 10 + 3 * static_cast<int64_t>(i)));
    alone.run();
    const std::vector<int32_t> expected = alone.take(own).tokens;
    if (id == cancelled) {
      EXPECT_EQ(made.reason, StopReason::cancelled);
      EXPECT_LT(made.tokens.size(), expected.size());
    } else {
      EXPECT_EQ(made.tokens, expected) << i;
    }
  }
}

TEST_F(TurnsDevice, ModelsSayWhereAStepGetsLonger) {
  const Model cpu = load(Device::cpu(), 1);
  EXPECT_EQ(cpu.padded_rows(17), 17);
  EXPECT_EQ(cpu.rows_before_jump(4), 0);
  EXPECT_EQ(cpu.rows_before_jump(5), 4);
  EXPECT_EQ(cpu.rows_before_jump(40), 4);
  for (const Device& device : test::every_device()) {
    if (device.info().is_cpu) continue;
    const Model model = load(device, 1);
    EXPECT_EQ(model.padded_rows(17), 32);
    EXPECT_EQ(model.rows_before_jump(17), 16);
    EXPECT_EQ(model.rows_before_jump(16), 8);
    EXPECT_EQ(model.rows_before_jump(33), 32);
    EXPECT_EQ(model.rows_before_jump(1), 0);
  }
}

}  // namespace
}  // namespace prism::llm
