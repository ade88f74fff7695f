// Tests models from files on every device against the results of an independent engine.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "ops/products/joint_products.h"
#include "prism/error.h"
#include "prism/llm/memory.h"
#include "prism/ops/attention.h"
#include "support/devices/devices.h"
#include "support/devices/interpreted_device.h"
#include "support/models/expected_text.h"
#include "support/normalised_error.h"

namespace prism::llm {
namespace {

using test::expected_text;
using test::ExpectedText;

int32_t best(std::span<const float> logits) {
  return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
}

// The difference between the largest and the second largest logit.
double lead(std::span<const float> logits) {
  std::vector<float> sorted(logits.begin(), logits.end());
  std::ranges::partial_sort(sorted, sorted.begin() + 2, std::ranges::greater{});
  return static_cast<double>(sorted[0]) - static_cast<double>(sorted[1]);
}

std::vector<float> all_logits(Model& model, std::span<const int32_t> ids, int32_t slot = 0) {
  const SequencePart part{slot, 0, ids, Wanted::all};
  return model.forward(std::span(&part, 1)).to_vector<float>();
}

// Greedy continuation, token by token.
std::vector<int32_t> greedy(Model& model, std::vector<int32_t> ids, size_t count) {
  std::vector<float> logits = model.prefill(0, 0, ids).to_vector<float>();
  for (size_t i = 0; i < count; ++i) {
    ids.push_back(best(logits));
    const SequencePart part{0, static_cast<int32_t>(ids.size() - 1), std::span(ids).last(1)};
    logits = model.forward(std::span(&part, 1)).to_vector<float>();
  }
  return ids;
}

class ModelDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (test::shared_model("stories260K").empty())
      GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  const GgufFile& small() {
    static const GgufFile file = GgufFile::open(test::shared_model("stories260K"));
    return file;
  }
  const ExpectedText& expected() {
    static const ExpectedText text = expected_text("stories260K.once", "stories260K.once.f32");
    return text;
  }
  Model load(const Device& device, ElementType kv_type = DType::f32, int64_t slots = 1,
             int64_t batch_rows = 512) {
    return Model::load(small(), {.placement = place_on(small(), device, 128, kv_type),
                                 .slots = slots,
                                 .batch_rows = batch_rows});
  }
  std::vector<int32_t> prompt() { return {expected().ids.begin(), expected().ids.begin() + 5}; }
};

bool takes_minutes_for(const Device& device, const char* what) {
  if (!test::is_intels_opencl(device.info())) return false;
  test::left_out(device.id(), std::string("Intel's OpenCL compiles ") + what + " for minutes");
  return true;
}

TEST_F(ModelDevice, LogitsOfEveryPositionAndGreedyText) {
  ASSERT_EQ(expected().ids.size(), 65u);
  for (const Device& device : test::every_device()) {
    Model model = load(device);
    const std::vector<float> logits = all_logits(model, expected().ids);
    ASSERT_EQ(logits.size(), expected().logits.size());
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected().logits[i], 1e-3) << device.id() << " at " << i;
    EXPECT_EQ(greedy(model, prompt(), 60), expected().ids) << device.id();
  }
}

// Heads of eight elements, with one query and with many.
TEST_F(ModelDevice, NothingIsLeftToTheCpu) {
  for (const Device& device : test::every_device()) {
    if (device.info().is_cpu) continue;
    if (takes_minutes_for(device, "f16 attention")) continue;
    Model model = load(device, DType::f16);
    for (const BatchShape& shape : {BatchShape{1, 1, 1, true}, BatchShape{32, 1, 1, false}}) {
      const std::string steps = model.explain(shape, false);
      EXPECT_EQ(steps.find("copy to cpu"), std::string::npos) << device.id() << "\n" << steps;
      if (!shape.each_one_row || !joins_products(device.info(), 1)) continue;
      // Embedding, seven steps per layer (norm; q, k, v with rotation; attention; out; norm; gate
      // and up; down; the rotation is separate if the bindings are too few), norm, output.
      const int64_t each = device.info().capabilities.max_buffers < 9 ? 8 : 7;
      const auto lines = std::ranges::count(steps.substr(0, steps.find(" of temporaries")), '\n');
      EXPECT_EQ(lines, 3 + each * model.config().layers) << steps;
    }
  }
}

TEST_F(ModelDevice, PromptInPiecesGivesTheSame) {
  for (const Device& device : test::every_device()) {
    Model model = load(device, DType::f32, 1, 7);  // 65 tokens in ten batches, the last one partial
    const std::vector<float> last = model.prefill(0, 0, expected().ids).to_vector<float>();
    const auto wanted = std::span(expected().logits).last(last.size());
    for (size_t i = 0; i < last.size(); ++i) ASSERT_NEAR(last[i], wanted[i], 1e-3) << device.id();
  }
}

TEST_F(ModelDevice, ABatchOfSequencesGivesWhatEachGivesAlone) {
  const std::vector<std::vector<int32_t>> texts = {
      {expected().ids.begin(), expected().ids.begin() + 17},
      {1, 500, 33},
      {1},
      {expected().ids.begin(), expected().ids.begin() + 40}};
  for (const Device& device : test::every_device()) {
    Model together = load(device, DType::f32, 5), alone = load(device);
    std::vector<SequencePart> parts;
    for (size_t i = 0; i < texts.size(); ++i)  // slots in a different order than the batch
      parts.push_back({static_cast<int32_t>(4 - i), 0, texts[i], Wanted::last});
    std::vector<float> logits = together.forward(parts).to_vector<float>();
    const size_t width = logits.size() / texts.size();
    // Then one more token for each.
    const int32_t next = 77;
    std::vector<SequencePart> steps;
    for (size_t i = 0; i < texts.size(); ++i)
      steps.push_back({static_cast<int32_t>(4 - i), static_cast<int32_t>(texts[i].size()),
                       std::span(&next, 1), Wanted::last});
    const std::vector<float> after = together.forward(steps).to_vector<float>();
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<float> one = alone.prefill(0, 0, texts[i]).to_vector<float>();
      const SequencePart step{0, static_cast<int32_t>(texts[i].size()), std::span(&next, 1)};
      const std::vector<float> two = alone.forward(std::span(&step, 1)).to_vector<float>();
      for (size_t c = 0; c < width; ++c) {
        ASSERT_NEAR(logits[i * width + c], one[c], 1e-4) << device.id() << " text " << i;
        ASSERT_NEAR(after[i * width + c], two[c], 1e-4) << device.id() << " text " << i;
      }
    }
  }
}

TEST_F(ModelDevice, AHalfPrecisionCacheStaysClose) {
  for (const Device& device : test::every_device()) {
    Model model = load(device, DType::f16);
    const std::vector<float> logits = all_logits(model, expected().ids);
    EXPECT_LT(test::normalised_error(logits, expected().logits), 1e-6) << device.id();
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected().logits[i], 0.03) << device.id() << " at " << i;
  }
}

TEST_F(ModelDevice, SplitOverDevicesGivesTheSameText) {
  const std::vector<Device> all = test::every_device();
  if (all.size() < 2) GTEST_SKIP() << "needs a device beside the CPU";
  Placement placement = place_on(small(), all[0], 128, DType::f32);
  for (size_t i = 0; i < placement.layers.size(); ++i)
    placement.layers[i] = all[i * all.size() / placement.layers.size()];
  placement.output = all.back();
  Model model = Model::load(small(), {.placement = placement});
  EXPECT_EQ(greedy(model, prompt(), 60), expected().ids);
}

TEST_F(ModelDevice, QuantisedWeights) {
  const std::string path = test::shared_model("stories15M-q8_0");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories15M-q8_0.gguf";
  const ExpectedText text =
      expected_text("stories15M-q8_0.once", "stories15M-q8_0.once.first5.f32");
  const GgufFile file = GgufFile::open(path);
  for (const Device& device : test::every_device()) {
    if (takes_minutes_for(device, "quantised products")) continue;
    Model model = Model::load(file, {.placement = place_on(file, device, 128)});
    constexpr size_t kRows = 16;
    std::vector<float> logits = all_logits(model, std::span(text.ids).first(kRows));
    ASSERT_EQ(logits.size() / kRows * text.prompt, text.logits.size());
    const size_t width = logits.size() / kRows;
    for (size_t i = text.prompt - 1; i + 1 < kRows; ++i) {
      const auto row = std::span(logits).subspan(i * width, width);
      EXPECT_TRUE(best(row) == text.ids[i + 1] || lead(row) < 0.2) << device.id() << " at " << i;
    }
    logits.resize(text.logits.size());
    EXPECT_LT(test::normalised_error(logits, text.logits), 1e-3) << device.id();
    for (size_t i = 0; i < text.prompt; ++i) {
      const auto row = std::span(logits).subspan(i * width, width);
      EXPECT_EQ(best(row), best(std::span(text.logits).subspan(i * width, width)))
          << device.id() << " position " << i;
    }
    // The text may diverge from the expected one only where two tokens are about equally likely.
    const std::vector<int32_t> ids =
        greedy(model, {text.ids.begin(), text.ids.begin() + kRows}, text.ids.size() - kRows);
    const auto parts = std::ranges::mismatch(ids, text.ids).in1;
    if (parts == ids.end()) continue;
    const std::vector<float> there =
        model.prefill(0, 0, std::span(ids.begin(), parts)).to_vector<float>();
    EXPECT_LT(lead(there), 0.2) << device.id() << " diverges at token " << parts - ids.begin();
  }
}

TEST_F(ModelDevice, PlansOfAllSizesShareTheirWorkMemory) {
  for (const Device& device : test::every_device()) {
    Model model = load(device);
    const auto work = [&] { return model.memory().at(0).work_bytes; };
    const auto next = [&](int32_t position) {
      const SequencePart part{0, position,
                              std::span(expected().ids).subspan(static_cast<size_t>(position), 1)};
      return model.forward(std::span(&part, 1)).to_vector<float>();
    };
    const auto row = [&](size_t position) {
      return std::span(expected().logits).subspan(position * 512, 512);
    };
    for (int32_t position = 0; position < 4; ++position) next(position);  // recorded by now
    const uint64_t small_work = work();
    all_logits(model, expected().ids);
    const uint64_t large_work = work();
    EXPECT_GT(large_work, small_work) << device.id();
    for (const int32_t position : {40, 41, 42}) {  // recorded again, over the larger memory
      const std::vector<float> logits = next(position);
      for (size_t i = 0; i < logits.size(); ++i)
        ASSERT_NEAR(logits[i], row(static_cast<size_t>(position))[i], 1e-3) << device.id();
    }
    model.prefill(0, 0, std::span(expected().ids).first(30));
    EXPECT_EQ(work(), large_work) << device.id();
  }
}

// The estimate that `prism fit` uses must match the memory a prompt takes.
TEST_F(ModelDevice, WorkMemoryIsKnownFromTheFile) {
  std::vector<Device> devices = test::every_device();
  devices.push_back(test::interpreted_device(132));  // its attention has many partial results
  for (const Device& device : devices) {
    if (takes_minutes_for(device, "f16 attention")) continue;
    for (const int64_t rows : {16, 64}) {
      Model model = load(device, DType::f16, 1, rows);
      const MemoryNeed need =
          memory_need(small(), model_sizes(small()), DType::f16, 128, device, rows);
      model.prefill(0, 0, expected().ids);
      const uint64_t work = model.memory().at(0).work_bytes;
      EXPECT_LE(work, need.activation_bytes + 4096) << device.id() << ", " << rows;
      // Allow for split attention with two queries at a time, which this prompt does not use.
      const uint64_t partial = cached_attention_work_bytes(device.info(), 8, 4, 8, DType::f16, 15);
      EXPECT_GE(work * 3 / 2 + partial, need.activation_bytes) << device.id() << ", " << rows;
    }
  }
}

TEST_F(ModelDevice, WorkMemoryHasRoomForUnpackedWeights) {
  const std::string path = test::shared_model("stories15M-q8_0");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories15M-q8_0.gguf";
  const GgufFile file = GgufFile::open(path);
  constexpr int64_t kRows = 64;
  const std::vector<int32_t> ids(kRows, 300);
  for (const Device& device : test::every_device()) {
    if (takes_minutes_for(device, "quantised products")) continue;
    Model model = Model::load(
        file, {.placement = place_on(file, device, 128, DType::f16), .batch_rows = kRows});
    model.prefill(0, 0, ids);
    const MemoryNeed need = memory_need(file, model_sizes(file), DType::f16, 128, device, kRows);
    EXPECT_LE(model.memory().at(0).work_bytes, need.activation_bytes + 4096) << device.id();
  }
}

TEST_F(ModelDevice, MistakesAreSaid) {
  Model model = load(Device::cpu());
  const auto fails = [&](const SequencePart& part, const std::string& word) {
    try {
      model.forward(std::span(&part, 1));
      ADD_FAILURE() << "no error that says " << word;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  const std::vector<int32_t> good = {1, 2}, bad = {1, 512};
  const auto beyond = static_cast<int32_t>(model.cache().slots() + model.cache().side_slots());
  fails({beyond, 0, good}, "slot " + std::to_string(beyond));
  fails({0, 127, good}, "127 to 128");
  fails({0, 0, bad}, "token 512");
  fails({0, 0, {}}, "no tokens");
  const std::vector<SequencePart> twice = {{0, 0, good}, {0, 4, good}};
  EXPECT_THROW(model.forward(twice), Error);
  EXPECT_THROW(load(Device::cpu(), BlockType::q8_0), Error);  // heads of 8
}

}  // namespace
}  // namespace prism::llm
