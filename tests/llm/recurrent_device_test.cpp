// Tests the states of recurrent layers: texts in one batch, decode loops, prefixes that are kept
// and continued, and what is refused.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "llm/generate/scheduler.h"
#include "llm/model/decode.h"
#include "prism/error.h"
#include "support/devices/devices.h"
#include "support/models/architecture_files.h"
#include "support/models/greedy.h"

namespace prism::llm {
namespace {

using test::ArchitectureFile;
using test::greedy;

// One for each kind of state.
constexpr const char* kKinds[] = {"mamba-dense",   "falcon-h1-dense", "lfm2-dense",
                                  "qwen3next-moe", "rwkv6-dense",     "rwkv7-dense"};

// Software devices take long to compile the kernels of all: one of them by turns.
std::vector<const char*> kinds_for(const Device& device) {
  const char* const text = std::getenv("PRISM_RANDOM_START");
  const size_t turn = text ? std::strtoul(text, nullptr, 10) : 0;
  if (!device.info().software) return {std::begin(kKinds), std::end(kKinds)};
  return {kKinds[turn % std::size(kKinds)]};
}

const ArchitectureFile* find(const std::string& name) {
  for (const ArchitectureFile& each : test::architecture_files())
    if (each.name == name) return &each;
  return nullptr;
}

class RecurrentDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (test::architecture_files().empty())
      GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  }
  static Model load(const ArchitectureFile& each, const Device& device, int64_t slots = 3) {
    const GgufFile file = GgufFile::open(each.path);
    return Model::load(
        file,
        {.placement = place_on(file, device, 128, DType::f32), .slots = slots, .cache_block = 16});
  }
  // The logits after each token, from the whole text at once.
  static std::vector<std::vector<float>> whole(Model& model, const ArchitectureFile& each) {
    const SequencePart part{0, 0, each.tokens, Wanted::all};
    const std::vector<float> all = model.forward(std::span(&part, 1)).to_vector<float>();
    const auto width = static_cast<int64_t>(all.size() / each.tokens.size());
    std::vector<std::vector<float>> rows;
    for (auto first = all.begin(); first != all.end(); first += width)
      rows.emplace_back(first, first + width);
    return rows;
  }
};

// A model with a scheduler.
struct Texts {
  Texts(Model loaded, const ArchitectureFile& each)
      : model(std::move(loaded)),
        tokenizer(Tokenizer::from(GgufFile::open(each.path))),
        scheduler(model, tokenizer) {}
  Generation generate(std::span<const int32_t> prompt, int64_t tokens) {
    const int64_t id = scheduler.add({{prompt.begin(), prompt.end()}, greedy(tokens)});
    scheduler.run();
    return scheduler.take(id);
  }
  Model model;
  Tokenizer tokenizer;
  Scheduler scheduler;
};

void expect_close(std::span<const float> found, std::span<const float> wanted,
                  const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  double difference = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double by = static_cast<double>(found[i]) - static_cast<double>(wanted[i]);
    difference += by * by;
    size += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
  }
  EXPECT_LT(difference, 1e-6 * size) << what;
}

// Three texts in one batch at unlike positions, each in parts of its own length: every one has the
// logits that it has alone. Slot 1 begins anew in between.
TEST_F(RecurrentDevice, TextsOfABatchKeepTheirOwnStates) {
  for (const Device& device : test::every_device())
    for (const char* name : kinds_for(device)) {
      const ArchitectureFile& each = *find(name);
      Model model = load(each, device);
      const std::vector<std::vector<float>> wanted = whole(model, each);
      const std::span<const int32_t> tokens = each.tokens;
      std::vector<size_t> at = {0, 0, 0};
      const std::vector<std::vector<size_t>> rounds = {{5, 1, 0}, {1, 7, 3}, {1, 1, 1}, {4, 0, 9}};
      for (size_t round = 0; round < rounds.size(); ++round) {
        if (round == 2) at[1] = 0;
        std::vector<SequencePart> parts;
        std::vector<size_t> last;
        for (size_t slot = 0; slot < 3; ++slot) {
          const size_t count = rounds[round][slot];
          if (count == 0) continue;
          parts.push_back({static_cast<int32_t>(slot), static_cast<int32_t>(at[slot]),
                           tokens.subspan(at[slot], count), Wanted::last});
          at[slot] += count;
          last.push_back(at[slot] - 1);
        }
        const std::vector<float> logits = model.forward(parts).to_vector<float>();
        const size_t width = logits.size() / parts.size();
        for (size_t i = 0; i < parts.size(); ++i)
          expect_close(std::span(logits).subspan(i * width, width), wanted[last[i]],
                       std::string(name) + " on " + device.id() + ", round " +
                           std::to_string(round) + ", text " + std::to_string(i));
      }
    }
}

// The recorded step of two texts, one of them from its first token on, takes tokens that forward
// passes over the same texts find most likely, up to what products of many rows round.
TEST_F(RecurrentDevice, DecodeLoopsCarryTheStates) {
  for (const Device& device : test::every_device())
    for (const char* name : kinds_for(device)) {
      const ArchitectureFile& each = *find(name);
      Model model = load(each, device);
      const auto prompt = std::span(each.tokens).first(9);
      constexpr size_t kSteps = 20;  // crosses blocks
      const SequencePart part{0, 0, prompt.first(prompt.size() - 1), Wanted::none};
      model.forward(std::span(&part, 1));
      DecodeLoop loop(model);
      loop.start(std::vector<DecodeLoop::Sequence>{
          {.slot = 0, .position = static_cast<int32_t>(prompt.size()) - 1, .token = prompt.back()},
          {.slot = 1, .position = 0, .token = prompt[0]}});
      std::vector<std::vector<int32_t>> texts = {{prompt.begin(), prompt.end()}, {prompt[0]}};
      for (size_t i = 0; i < kSteps; ++i) {
        ASSERT_GT(loop.steps_left(), 0);
        const std::vector<int32_t> tokens = loop.read(loop.queue_step());
        for (size_t t = 0; t < texts.size(); ++t) texts[t].push_back(tokens[t]);
      }
      for (size_t t = 0; t < texts.size(); ++t)
        for (size_t i = texts[t].size() - kSteps; i < texts[t].size(); ++i) {
          const std::vector<float> logits =
              model.prefill(2, 0, std::span(texts[t]).first(i)).to_vector<float>();
          const auto [least, most] = std::ranges::minmax(logits);
          EXPECT_LE(most - logits[static_cast<size_t>(texts[t][i])], 2e-3f * (most - least))
              << name << " on " << device.id() << ", text " << t << ", token " << i;
        }
      EXPECT_EQ(model.cache().states().length(0), static_cast<int64_t>(prompt.size() - 1 + kSteps));
    }
}

TEST_F(RecurrentDevice, APositionThatTheStateIsNotAtIsRefused) {
  const ArchitectureFile& each = *find("mamba-dense");
  Model model = load(each, Device::cpu());
  const std::vector<float> wanted = whole(model, each)[1];
  model.cache().truncate(0, 0);
  const auto run = [&](int32_t first, size_t count) {
    const SequencePart part{0, first, std::span(each.tokens).subspan(0, count), Wanted::last};
    return model.forward(std::span(&part, 1)).to_vector<float>();
  };
  EXPECT_THROW(run(3, 2), Error);
  run(0, 5);
  try {
    run(3, 2);
    FAIL() << "a state that has seen 5 tokens continued at 3";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("have seen 5 tokens"), std::string::npos)
        << error.what();
  }
  expect_close(run(0, 2), wanted, "from the start again");
}

// A prompt again, a longer one, and one that leaves the path of the first: the same tokens as in a
// model that has seen nothing before.
TEST_F(RecurrentDevice, PrefixesContinueFromTheirStates) {
  for (const char* name : {"mamba2-dense", "falcon-h1-dense", "rwkv7-dense"}) {
    const ArchitectureFile& each = *find(name);
    Texts model(load(each, Device::cpu(), 2), each);
    const auto fresh = [&](std::span<const int32_t> prompt) {
      return Texts(load(each, Device::cpu(), 1), each).generate(prompt, 12).tokens;
    };
    const auto prompt = std::span(each.tokens).first(40);
    const Generation first = model.generate(prompt, 12);
    EXPECT_EQ(first.tokens, fresh(prompt)) << name;
    EXPECT_EQ(first.statistics.reused_tokens, 0) << name;
    const Generation again = model.generate(prompt, 12);
    EXPECT_EQ(again.tokens, first.tokens) << name;
    EXPECT_EQ(again.statistics.reused_tokens, 32) << name;  // the last whole block
    // A conversation goes on: the prompt, its answer but the last token, and more.
    std::vector<int32_t> longer(prompt.begin(), prompt.end());
    longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
    longer.insert(longer.end(), each.tokens.begin(), each.tokens.begin() + 5);
    const Generation further = model.generate(longer, 12);
    EXPECT_EQ(further.tokens, fresh(longer)) << name;
    EXPECT_EQ(further.statistics.reused_tokens, 40 + 12 - 1) << name;
    std::vector<int32_t> other(prompt.begin(), prompt.begin() + 20);
    other.push_back(each.tokens[3]);
    const Generation branch = model.generate(other, 12);
    EXPECT_EQ(branch.tokens, fresh(other)) << name;
    EXPECT_EQ(branch.statistics.reused_tokens, 0) << name;
  }
}

// More texts than states: some wait, are cancelled or begin where others ended, and none is mixed
// up with another.
TEST_F(RecurrentDevice, ManyTextsShareFewStates) {
  const ArchitectureFile& each = *find("falcon-h1-dense");
  Texts model(load(each, Device::cpu(), 2), each);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<int64_t> ids;
  for (size_t i = 0; i < 9; ++i) {
    prompts.emplace_back(each.tokens.begin() + static_cast<int64_t>(i % 3),
                         each.tokens.begin() + 20 + static_cast<int64_t>(i * 2));
    ids.push_back(model.scheduler.add({prompts.back(), greedy(10)}));
  }
  for (int step = 0; model.scheduler.step(); ++step)
    if (step == 6) model.scheduler.cancel(ids[1]);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Generation found = model.scheduler.take(ids[i]);
    const std::vector<int32_t> wanted =
        Texts(load(each, Device::cpu(), 1), each).generate(prompts[i], 10).tokens;
    if (i == 1) {
      EXPECT_EQ(found.reason, StopReason::cancelled);
      EXPECT_TRUE(std::equal(found.tokens.begin(), found.tokens.end(), wanted.begin()));
    } else {
      EXPECT_EQ(found.tokens, wanted) << i;
    }
  }
}

}  // namespace
}  // namespace prism::llm
