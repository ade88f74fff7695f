// Tests decode loops on every device: text, steps queued ahead, sampling.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "llm/model/decode.h"
#include "llm/model/decode_ops.h"
#include "prism/error.h"
#include "prism/ops/sort.h"
#include "support/devices/devices.h"
#include "support/models/expected_text.h"

namespace prism::llm {
namespace {

class DecodeDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (test::shared_model("stories260K").empty())
      GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  const GgufFile& small() {
    static const GgufFile file = GgufFile::open(test::shared_model("stories260K"));
    return file;
  }
  std::vector<int32_t> ids() {
    return test::expected_text("stories260K.once", "stories260K.once.f32").ids;
  }
  Model load(const Device& device, int64_t slots = 1) {
    return Model::load(small(),
                       {.placement = place_on(small(), device, 80, DType::f32), .slots = slots});
  }
};

TEST_F(DecodeDevice, GreedyTextRunningAhead) {
  const std::vector<int32_t> expected = ids();
  for (const Device& device : test::every_device()) {
    Model model = load(device);
    // All but the last token of the prompt, which the loop starts with.
    model.prefill(0, 0, std::span(expected).first(4));
    DecodeLoop loop(model);
    loop.start({{.slot = 0, .position = 4, .token = expected[4]}});
    std::vector<int32_t> text(expected.begin(), expected.begin() + 5);
    EXPECT_EQ(loop.queue_step(), 0);
    for (int64_t step = 1; step <= 60; ++step) {
      EXPECT_EQ(loop.queue_step(), step);
      text.push_back(loop.read(step - 1)[0]);
    }
    EXPECT_EQ(text, expected) << device.id();
    EXPECT_EQ(loop.read(60).size(), 1u);
    EXPECT_EQ(loop.steps_left(), 80 - 4 - 61);
    while (loop.steps_left() > 0) loop.queue_step();
    EXPECT_THROW(loop.queue_step(), Error);
    EXPECT_THROW(loop.read(1), Error);  // overwritten
    EXPECT_THROW(loop.read(loop.queued()), Error);
    // Restart in the middle of the text: later entries in the cache must not matter.
    loop.start({{.slot = 0, .position = 30, .token = expected[30]}});
    loop.queue_step();
    EXPECT_EQ(loop.read(0)[0], expected[31]) << device.id();
  }
}

// A server that ends in the middle of a text leaves steps that nobody reads.
TEST_F(DecodeDevice, EndsWhileStepsRun) {
  const std::vector<int32_t> expected = ids();
  for (const Device& device : test::every_device()) {
    for (int round = 0; round < 2; ++round) {
      std::optional<Model> model = load(device);
      model->prefill(0, 0, std::span(expected).first(4));
      std::optional<DecodeLoop> loop(*model);
      loop->start({{.slot = 0, .position = 4, .token = expected[4]}});
      for (int step = 0; step < 20; ++step) loop->queue_step();
      EXPECT_EQ(loop->read(5)[0], expected[10]) << device.id();
      if (round == 0) {
        loop.emplace(*model);  // another one goes on where the first was
        loop->start({{.slot = 0, .position = 10, .token = expected[10]}});
        loop->queue_step();
        EXPECT_EQ(loop->read(0)[0], expected[11]) << device.id();
        for (int step = 0; step < 20; ++step) loop->queue_step();
      }
      loop.reset();
      model.reset();
    }
  }
}

TEST_F(DecodeDevice, SeveralSequencesAtOnce) {
  const std::vector<int32_t> expected = ids();
  for (const Device& device : test::every_device()) {
    Model model = load(device, 4);
    std::vector<DecodeLoop::Sequence> sequences;
    const std::vector<int32_t> lengths = {4, 20, 11};  // padded to four rows
    for (int32_t i = 0; i < 3; ++i) {
      const int32_t length = lengths[static_cast<size_t>(i)];
      model.prefill(3 - i, 0, std::span(expected).first(static_cast<size_t>(length)));
      sequences.push_back({3 - i, length, expected[static_cast<size_t>(length)], {}});
    }
    DecodeLoop loop(model);
    loop.start(sequences);
    for (int64_t step = 0; step < 20; ++step) {
      loop.queue_step();
      const std::vector<int32_t> tokens = loop.read(step);
      ASSERT_EQ(tokens.size(), 3u);
      for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(tokens[i], expected[static_cast<size_t>(lengths[i] + 1 + step)])
            << device.id() << " sequence " << i << " step " << step;
    }
  }
}

// Sequences leave and enter the running loop while steps run ahead, and go on where they were.
TEST_F(DecodeDevice, SequencesReplaceOthers) {
  const std::vector<int32_t> expected = ids();
  for (const Device& device : test::every_device()) {
    SCOPED_TRACE(device.id());
    Model model = Model::load(
        small(),
        {.placement = place_on(small(), device, 80, DType::f32), .slots = 5, .cache_block = 4});
    std::vector<int32_t> length = {4, 20, 11, 7, 15};  // by slot; the tokens that are known
    for (int32_t slot = 0; slot < 5; ++slot)
      model.prefill(slot, 0, std::span(expected).first(static_cast<size_t>(length[size_t(slot)])));
    const auto sequence = [&](int32_t slot) {
      const int32_t known = length[static_cast<size_t>(slot)];
      return DecodeLoop::Sequence{slot, known, expected[static_cast<size_t>(known)]};
    };
    DecodeLoop loop(model);
    std::vector<int32_t> rows = {0, 1, 2};
    loop.start({sequence(0), sequence(1), sequence(2)});
    // Each turn two slots that wait take the rows of others. A turn is read after the next one has
    // begun.
    std::vector<std::vector<int32_t>> slots_of_step;
    const auto read = [&](int64_t step) {
      const std::vector<int32_t> tokens = loop.read(step);
      ASSERT_EQ(tokens.size(), 3u);
      for (size_t row = 0; row < 3; ++row) {
        int32_t& known = length[static_cast<size_t>(slots_of_step[static_cast<size_t>(step)][row])];
        EXPECT_EQ(tokens[row], expected[static_cast<size_t>(++known)]) << step << " " << row;
      }
    };
    for (int turn = 0; turn < 8; ++turn) {
      if (turn > 0) {
        std::vector<DecodeLoop::Replacement> changes;
        std::vector<int32_t> waiting;
        for (int32_t slot = 0; slot < 5; ++slot)
          if (!std::ranges::count(rows, slot)) waiting.push_back(slot);
        for (const int i : {0, 1}) {
          const auto row = static_cast<size_t>((turn + i) % 3);
          rows[row] = waiting[static_cast<size_t>(i)];
          changes.push_back({row, sequence(rows[row])});
        }
        ASSERT_TRUE(loop.replace(changes));
      }
      for (int step = 0; step < 2; ++step) {
        loop.queue_step();
        slots_of_step.push_back(rows);
        if (loop.queued() > 1) read(loop.queued() - 2);
      }
    }
    read(loop.queued() - 1);
    // What the plan of greedy rows cannot do needs another start.
    const DecodeLoop::Replacement drawn{0,
                                        {.slot = rows[0],
                                         .position = length[size_t(rows[0])],
                                         .token = 1,
                                         .sampling = {.temperature = 1}}};
    EXPECT_FALSE(loop.replace(std::span(&drawn, 1)));
    EXPECT_THROW(loop.replace(std::vector<DecodeLoop::Replacement>{{3, sequence(0)}}), Error);
  }
}

// A sequence that stays has no next position: another start needs to do without it.
TEST_F(DecodeDevice, NoneReplacesAnotherOnceTheContextIsFull) {
  const std::vector<int32_t> expected = ids();
  for (const Device& device : test::every_device()) {
    SCOPED_TRACE(device.id());
    Model model = load(device, 3);
    for (const int32_t slot : {0, 1, 2})
      model.prefill(slot, 0, std::span(expected).first(slot == 0 ? 60 : 4));
    DecodeLoop loop(model);
    loop.start({{.slot = 0, .position = 60, .token = expected[60]},
                {.slot = 1, .position = 4, .token = expected[4]}});
    while (loop.steps_left() > 0) loop.queue_step();
    EXPECT_EQ(loop.queued(), 20);
    const DecodeLoop::Replacement change{1, {.slot = 2, .position = 4, .token = expected[4]}};
    EXPECT_FALSE(loop.replace(std::span(&change, 1)));
    EXPECT_EQ(loop.read(19)[1], expected[24]);
  }
}

// Texts cross the borders of small blocks on the device, through tables with blocks of each other.
// When the cache is full, the loop ends and can be restarted.
TEST_F(DecodeDevice, CrossesBlocks) {
  const std::vector<int32_t> expected = ids();
  for (const Device& device : test::every_device()) {
    Model model = Model::load(small(), {.placement = place_on(small(), device, 80, DType::f32),
                                        .slots = 3,
                                        .cache_positions = 96,
                                        .cache_block = 4});
    const std::vector<int32_t> lengths = {4, 20, 11};
    std::vector<DecodeLoop::Sequence> sequences;
    for (int32_t at = 0; at < 20; at += 2)  // the texts take blocks in turn
      for (int32_t i = 0; i < 3; ++i) {
        const int32_t length = lengths[static_cast<size_t>(i)], count = std::min(2, length - at);
        if (count <= 0) continue;
        const SequencePart part{
            i, at, std::span(expected).subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
            Wanted::none};
        model.forward(std::span(&part, 1));
      }
    for (int32_t i = 0; i < 3; ++i)
      sequences.push_back({i,
                           lengths[static_cast<size_t>(i)],
                           expected[static_cast<size_t>(lengths[static_cast<size_t>(i)])],
                           {}});
    DecodeLoop loop(model);
    loop.start(sequences);
    int64_t steps = 0;
    for (; loop.steps_left() > 0; ++steps) {
      loop.queue_step();
      const std::vector<int32_t> tokens = loop.read(steps);
      for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(tokens[i], expected[static_cast<size_t>(lengths[i] + 1 + steps)])
            << device.id() << " sequence " << i << " step " << steps;
    }
    // 24 blocks hold 3 * 32 positions; 35 are in use and each text wastes less than a block.
    EXPECT_GE(steps, 16) << device.id();
    EXPECT_LE(steps, 21) << device.id();
    EXPECT_THROW(loop.queue_step(), Error);
    model.cache().truncate(1, 0);
    const auto length = static_cast<int32_t>(lengths[0] + steps);
    loop.start({{.slot = 0, .position = length, .token = expected[static_cast<size_t>(length)]}});
    for (int64_t step = 0; step < 20; ++step) {
      loop.queue_step();
      EXPECT_EQ(loop.read(step)[0], expected[static_cast<size_t>(length + 1 + step)])
          << device.id() << " alone, step " << step;
    }
  }
}

TEST_F(DecodeDevice, SplitOverDevices) {
  const std::vector<Device> all = test::every_device();
  if (all.size() < 2) GTEST_SKIP() << "needs a device beside the CPU";
  const std::vector<int32_t> expected = ids();
  Placement placement = place_on(small(), all[0], 80, DType::f32);
  for (size_t i = 0; i < placement.layers.size(); ++i)
    placement.layers[i] = all[i * all.size() / placement.layers.size()];
  placement.output = all.back();
  Model model = Model::load(small(), {.placement = placement});
  DecodeLoop loop(model);
  loop.start({{.slot = 0, .position = 0, .token = expected[0]}});
  // Feed the prompt one token at a time by restarting the loop, then decode freely.
  for (int32_t i = 0; i < 4; ++i) {
    loop.start({{.slot = 0, .position = i, .token = expected[static_cast<size_t>(i)]}});
    loop.queue_step();
  }
  loop.start({{.slot = 0, .position = 4, .token = expected[4]}});
  for (int64_t step = 0; step < 30; ++step) {
    loop.queue_step();
    EXPECT_EQ(loop.read(step)[0], expected[static_cast<size_t>(5 + step)]);
  }
}

TEST_F(DecodeDevice, TheSameSeedGivesTheSameText) {
  const std::vector<int32_t> expected = ids();
  for (const Device& device : test::every_device()) {
    Model model = load(device);
    DecodeLoop loop(model);
    const auto text = [&](const Sampling& sampling) {
      model.prefill(0, 0, std::span(expected).first(4));
      loop.start({{0, 4, expected[4], sampling}});
      std::vector<int32_t> tokens;
      for (int64_t step = 0; step < 12; ++step) {
        loop.queue_step();
        tokens.push_back(loop.read(step)[0]);
      }
      return tokens;
    };
    const Sampling warm{.temperature = 1.5f, .top_k = 40, .top_p = 0.99f, .seed = 7};
    Sampling other = warm;
    other.seed = 8;
    EXPECT_EQ(text(warm), text(warm)) << device.id();
    EXPECT_NE(text(warm), text(other)) << device.id();
    Sampling narrow = warm;  // leaves one candidate
    narrow.top_k = 1;
    const std::vector<int32_t> greedy(expected.begin() + 5, expected.begin() + 17);
    EXPECT_EQ(text(narrow), greedy) << device.id();
    narrow.top_k = 0;
    narrow.top_p = 1e-6f;
    EXPECT_EQ(text(narrow), greedy) << device.id();
    narrow.top_p = 1;
    narrow.min_p = 1;
    EXPECT_EQ(text(narrow), greedy) << device.id();
  }
}

// Frequencies of many draws against probabilities computed in float64.
TEST(SamplingDevice, FrequenciesFollowTheCuts) {
  constexpr int64_t kDraws = 4096, kWords = 300;
  std::vector<float> logits(kWords);
  for (size_t i = 0; i < kWords; ++i)
    logits[i * 7 % kWords] = static_cast<float>(3.0 * std::sin(static_cast<double>(i)));
  const std::vector<Sampling> settings = {
      {.temperature = 1.f, .seed = 1},
      {.temperature = 0.7f, .top_k = 20, .seed = 2},
      {.temperature = 1.3f, .top_p = 0.6f, .seed = 3},
      {.temperature = 0.9f, .min_p = 0.3f, .seed = 4},
      {.temperature = 2.f, .top_k = 50, .top_p = 0.8f, .min_p = 0.2f, .seed = 5}};
  for (const Device& device : test::every_device()) {
    for (const Sampling& each : settings) {
      std::vector<float> rows;
      std::vector<int32_t> positions;
      for (int64_t i = 0; i < kDraws; ++i) {
        rows.insert(rows.end(), logits.begin(), logits.end());
        positions.push_back(static_cast<int32_t>(i));
      }
      const std::vector<Sampling> all(kDraws, each);
      const std::vector<int32_t> drawn =
          sample(from_vector(rows, {kDraws, kWords}, device), all, positions);

      std::vector<int32_t> order(kWords);
      for (size_t i = 0; i < kWords; ++i) order[i] = static_cast<int32_t>(i);
      const auto logit = [&](int32_t i) {
        return static_cast<double>(logits[static_cast<size_t>(i)]);
      };
      std::ranges::stable_sort(order, std::ranges::greater{}, logit);
      if (each.top_k > 0) order.resize(static_cast<size_t>(each.top_k));
      double sum = 0, reached = 0;
      for (const int32_t i : order) sum += std::exp(logit(i));
      std::map<int32_t, double> probability;
      for (const int32_t i : order) {
        if (reached >= static_cast<double>(each.top_p) * sum) break;
        if (std::exp(logit(i) - logit(order[0])) < static_cast<double>(each.min_p)) break;
        reached += std::exp(logit(i));
        probability[i] = std::exp(logit(i) / static_cast<double>(each.temperature));
      }
      double whole = 0;
      for (const auto& [token, weight] : probability) whole += weight;
      std::map<int32_t, double> seen;
      for (const int32_t token : drawn) seen[token] += 1.0 / kDraws;
      for (const auto& [token, share] : seen)
        ASSERT_TRUE(probability.contains(token)) << device.id() << " drew a filtered token";
      for (const auto& [token, weight] : probability) {
        const double p = weight / whole, deviation = std::sqrt(p * (1 - p) / kDraws);
        EXPECT_NEAR(seen[token], p, 5 * deviation + 1e-9) << device.id() << " token " << token;
      }
    }
  }
}

}  // namespace
}  // namespace prism::llm
