// Tests generated text on every device against an independent engine, alone and in batches.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "llm/generate/scheduler.h"
#include "llm/gguf/gguf_writer.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "support/devices/devices.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

using test::greedy;

class GenerationDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (path().empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  static std::string path() { return test::shared_model("stories260K"); }
  static std::vector<int32_t> expected_ids() {
    return test::expected_text("stories260K.once", "stories260K.once.f32").ids;
  }
  static std::vector<int32_t> prompt() {
    const auto ids = expected_ids();
    return {ids.begin(), ids.begin() + 5};
  }
  static LanguageModel load(const Device& device, int64_t slots = 1, int64_t context = 128,
                            int64_t batch = 64) {
    const GgufFile file = GgufFile::open(path());
    LoadOptions options;
    options.slots = slots;
    options.batch_rows = batch;
    return LanguageModel::load(path(), place_on(file, device, context, DType::f32), options);
  }
  static LanguageModel& cpu() {
    static LanguageModel model = load(Device::cpu(), 3);
    return model;
  }
  // The text after "Once upon a time" from the independent engine.
  static std::string expected_tail() {
    std::ifstream file(std::string(path()).replace(path().rfind("models/"), std::string::npos,
                                                   "expected/stories260K.once.txt"));
    std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.substr(std::string("Once upon a time").size());
  }
};

TEST_F(GenerationDevice, GreedyTextOnEveryDevice) {
  for (const Device& device : test::every_device()) {
    LanguageModel model = load(device);
    std::string streamed;
    const Generation result =
        model.generate("Once upon a time", greedy(60), [&](std::string_view text) {
          streamed += text;
          return true;
        });
    std::vector<int32_t> ids = prompt();
    ids.insert(ids.end(), result.tokens.begin(), result.tokens.end());
    EXPECT_EQ(ids, expected_ids()) << device.id();
    EXPECT_EQ(result.text, expected_tail()) << device.id();
    EXPECT_EQ(streamed, result.text) << device.id();
    EXPECT_EQ(result.reason, StopReason::max_tokens);
    EXPECT_EQ(result.statistics.prompt_tokens, 5);
    EXPECT_EQ(result.statistics.generated_tokens, 60);
    EXPECT_GT(result.statistics.generation_rate(), 0);
  }
}

TEST_F(GenerationDevice, HostSamplersGiveTheSameGreedyText) {
  for (const Device& device : test::every_device()) {
    LanguageModel model = load(device);
    GenerationOptions options = greedy(30);
    options.sampler.logit_bias = {{0, -1.0f}};  // an unused token: forces host sampling
    EXPECT_EQ(model.generate("Once upon a time", options).text,
              model.generate("Once upon a time", greedy(30)).text)
        << device.id();
  }
}

TEST_F(GenerationDevice, ABatchGivesWhatEachGivesAlone) {
  const std::vector<std::string> prompts = {
      "Once upon a time", "Lily and Tom", "The dog", "One day, a big bird saw", "A",
      "She said \"Hello"};
  for (const Device& device : test::every_device()) {
    LanguageModel together = load(device, 3, 96, 16), alone = load(device, 1, 96);
    std::vector<TextRequest> requests;
    for (size_t i = 0; i < prompts.size(); ++i) {
      GenerationOptions options = greedy(static_cast<int64_t>(5 + 7 * i));  // they end one by one
      if (i % 3 == 1) {
        options.sampler.temperature = 0.9f;
        options.sampler.seed = i;
      }
      if (i % 3 == 2) options.sampler.penalties.presence = 0.5f;  // sampled on the host
      requests.push_back({prompts[i], options, {}});
    }
    const auto copies = requests;
    const std::vector<Generation> results = together.generate_all(std::move(requests));
    for (size_t i = 0; i < prompts.size(); ++i) {
      const Generation single = alone.generate(copies[i].prompt, copies[i].options);
      EXPECT_EQ(results[i].tokens, single.tokens) << device.id() << " " << prompts[i];
      EXPECT_EQ(results[i].text, single.text);
    }
  }
}

// The file names tokens that no text may have.
TEST_F(GenerationDevice, SuppressedTokensAreNotChosen) {
  const test::TemporaryFolder folder;
  const std::string other = folder / "suppressed.gguf";
  const GgufFile file = GgufFile::open(path());
  const Generation all = cpu().generate("Once upon a time", greedy(5));
  GgufWriter to;
  for (const auto& [key, value] : file.metadata()) to.set(key, value);
  to.set("tokenizer.ggml.suppress_tokens", std::vector<int32_t>{all.tokens[0], -1, 1 << 20});
  for (const GgufTensor& each : file.tensors()) to.add_tensor(each, file.data(each));
  to.write(other);
  for (const Device& device : test::every_device()) {
    LanguageModel model = LanguageModel::load(other, place_on(file, device, 128, DType::f32), {});
    for (const float temperature : {0.f, 1.f}) {
      GenerationOptions options = greedy(20);
      options.sampler.temperature = temperature;
      const Generation result = model.generate("Once upon a time", options);
      EXPECT_EQ(result.tokens.size(), 20u) << device.id();
      EXPECT_EQ(std::ranges::count(result.tokens, all.tokens[0]), 0) << device.id();
    }
  }
}

TEST_F(GenerationDevice, AReusedPrefixGivesTheSameText) {
  for (const Device& device : test::every_device()) {
    LanguageModel model = load(device), fresh = load(device);
    const Generation first = model.generate("Once upon a time", greedy(20));
    const std::string longer = "Once upon a time" + first.text + " And then";
    const Generation second = model.generate(longer, greedy(20));
    EXPECT_GT(second.statistics.reused_tokens, 15) << device.id();
    EXPECT_EQ(second.text, fresh.generate(longer, greedy(20)).text) << device.id();
    // The same prompt again: all but its last token is in the cache.
    const Generation again = model.generate(longer, greedy(20));
    EXPECT_EQ(again.statistics.reused_tokens, again.statistics.prompt_tokens - 1);
    EXPECT_EQ(again.text, second.text);
  }
}

// Five texts in a cache for one and a half of them: the youngest wait or give up their blocks, and
// every text is what it is alone.
TEST_F(GenerationDevice, TextsShareTheBlocksThereAre) {
  const GgufFile file = GgufFile::open(path());
  const Tokenizer tokenizer = Tokenizer::from(file);
  const std::vector<std::string> prompts = {"Once upon a time", "Lily and Tom", "The dog",
                                            "One day, a big bird saw", "A"};
  for (const Device& device : test::every_device()) {
    LanguageModel alone = load(device);
    Model model = Model::load(file, {.placement = place_on(file, device, 80, DType::f32),
                                     .slots = 4,
                                     .cache_positions = 120,
                                     .cache_block = 4,
                                     .batch_rows = 64});
    Scheduler scheduler(model, tokenizer);
    std::vector<int64_t> ids;
    for (const std::string& prompt : prompts)
      ids.push_back(scheduler.add({tokenizer.encode(prompt), greedy(50)}));
    scheduler.run();
    int64_t recomputed = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Generation result = scheduler.take(ids[i]);
      EXPECT_EQ(result.text, alone.generate(prompts[i], greedy(50)).text)
          << device.id() << ": " << prompts[i];
      recomputed += result.statistics.recomputed_tokens;
    }
    EXPECT_GT(recomputed, 0) << device.id();
  }
}

// A text that begins like a running one takes its blocks, and like a finished one too.
TEST_F(GenerationDevice, PrefixesAreSharedWithRunningTexts) {
  const GgufFile file = GgufFile::open(path());
  const Tokenizer tokenizer = Tokenizer::from(file);
  const std::vector<int32_t> ids = expected_ids();
  for (const Device& device : test::every_device()) {
    Model model = Model::load(
        file, {.placement = place_on(file, device, 80, DType::f32), .slots = 2, .cache_block = 4});
    Scheduler scheduler(model, tokenizer);
    const auto begin = [&](size_t tokens) {
      return scheduler.add({{ids.begin(), ids.begin() + static_cast<int64_t>(tokens)}, greedy(10)});
    };
    const int64_t first = begin(22);
    scheduler.step();
    const int64_t second = begin(23);
    scheduler.run();
    const Generation a = scheduler.take(first), b = scheduler.take(second);
    EXPECT_EQ(a.statistics.reused_tokens, 0);
    EXPECT_EQ(b.statistics.reused_tokens, 20) << device.id();  // whole blocks
    EXPECT_TRUE(std::equal(a.tokens.begin(), a.tokens.end(), ids.begin() + 22)) << device.id();
    EXPECT_TRUE(std::equal(b.tokens.begin(), b.tokens.end(), ids.begin() + 23)) << device.id();
    const int64_t third = begin(30);
    scheduler.run();
    const Generation c = scheduler.take(third);
    EXPECT_EQ(c.statistics.reused_tokens, 29) << device.id();
    EXPECT_TRUE(std::equal(c.tokens.begin(), c.tokens.end(), ids.begin() + 30)) << device.id();
    // Nothing is lost: what no text uses can be evicted.
    scheduler.forget_cache();
    EXPECT_EQ(model.cache().blocks(0).free(), model.cache().blocks(0).count()) << device.id();
  }
}

TEST_F(GenerationDevice, ALateStopRollsBack) {
  for (const Device& device : test::every_device()) {
    LanguageModel model = load(device), fresh = load(device);
    // Ends while steps are queued; the next text must not be affected by them.
    GenerationOptions options = greedy(60);
    options.stop = {"little"};
    const Generation stopped = model.generate("Once upon a time", options);
    EXPECT_EQ(stopped.text, ", there was a ") << device.id();
    EXPECT_EQ(stopped.reason, StopReason::stop_text);
    EXPECT_EQ(stopped.stop, "little");
    const std::string next = "Once upon a time, there was a cat";
    const Generation result = model.generate(next, greedy(25));
    EXPECT_GT(result.statistics.reused_tokens, 5);
    EXPECT_EQ(result.text, fresh.generate(next, greedy(25)).text) << device.id();
  }
}

TEST_F(GenerationDevice, TheSameSeedGivesTheSameText) {
  for (const Device& device : test::every_device()) {
    LanguageModel model = load(device);
    GenerationOptions options = greedy(40);
    options.sampler.temperature = 1;
    options.sampler.seed = 11;
    const std::string first = model.generate("Once upon a time", options).text;
    EXPECT_EQ(model.generate("Once upon a time", options).text, first) << device.id();
    options.sampler.seed = 12;
    EXPECT_NE(model.generate("Once upon a time", options).text, first) << device.id();
  }
}

TEST_F(GenerationDevice, StopStringsAreNeverShown) {
  const std::string all = expected_tail();
  // Every stop string in the text ends it right before its occurrence, however it is tokenized.
  for (const std::string stop : {"there", "a little girl", "Lily.", ". She", "to play", ", "}) {
    GenerationOptions options = greedy(60);
    options.stop = {"nowhere", stop};
    std::string streamed;
    const Generation result =
        cpu().generate("Once upon a time", options, [&](std::string_view text) {
          streamed += text;
          return true;
        });
    EXPECT_EQ(result.text, all.substr(0, all.find(stop))) << stop;
    EXPECT_EQ(streamed, result.text);
  }
}

TEST_F(GenerationDevice, CallbacksAndOtherThreadsCancel) {
  int calls = 0;
  const Generation stopped =
      cpu().generate("Once upon a time", greedy(60), [&](std::string_view) { return ++calls < 5; });
  EXPECT_EQ(stopped.reason, StopReason::cancelled);
  EXPECT_EQ(calls, 5);
  std::atomic<bool> begun = false;
  std::thread other([&] {
    while (!begun) std::this_thread::yield();
    cpu().cancel();
  });
  GenerationOptions endless = greedy(-1);
  endless.ignore_end = true;
  endless.shift_context = true;
  const Generation cancelled = cpu().generate("Once upon a time", endless, [&](std::string_view) {
    begun = true;
    return true;
  });
  other.join();
  EXPECT_EQ(cancelled.reason, StopReason::cancelled);
  EXPECT_GT(cancelled.tokens.size(), 0u);
  // The model still works afterwards.
  EXPECT_EQ(cpu().generate("Once upon a time", greedy(60)).text, expected_tail());
}

TEST_F(GenerationDevice, AFullContextStopsOrShifts) {
  LanguageModel model = load(Device::cpu(), 1, 32);
  GenerationOptions options = greedy(100);
  const Generation full = model.generate("Once upon a time", options);
  EXPECT_EQ(full.reason, StopReason::context);
  EXPECT_EQ(full.tokens.size(), 28u);  // 27 fit after a prompt of 5; the last is not cached
  EXPECT_EQ(expected_tail().find(full.text), 0u);
  options.shift_context = true;
  options.keep = 1;
  const Generation shifted = model.generate("Once upon a time", options);
  EXPECT_EQ(shifted.reason, StopReason::max_tokens);
  EXPECT_EQ(shifted.tokens.size(), 100u);
  EXPECT_TRUE(std::ranges::equal(std::span(shifted.tokens).first(28), full.tokens));
  EXPECT_THROW(model.generate(std::vector<int32_t>(33, 5)), Error);
  EXPECT_THROW(model.generate(std::vector<int32_t>{}), Error);
}

TEST_F(GenerationDevice, GrammarsHold) {
  GenerationOptions options = greedy(60);
  options.grammar = Grammar::parse(R"(root ::= " " ("cat" | "dog") [a-z ]{3,9} "!")");
  const Generation result = cpu().generate("Lily had a big", options);
  EXPECT_TRUE(options.grammar->matches(result.text)) << result.text;
  EXPECT_EQ(result.reason, StopReason::end_token);
  options.grammar = Grammar::from_json_schema(
      R"({"type": "object", "properties": {"a": {"type": "integer", "maximum": 9, "minimum": 0},
          "b": {"enum": ["x", "y"]}}, "required": ["a", "b"]})");
  for (const uint64_t seed : {1, 2, 3}) {
    options.sampler.temperature = 1.5f;
    options.sampler.seed = seed;
    const Generation json = cpu().generate("Lily", options);
    EXPECT_TRUE(options.grammar->matches(json.text)) << json.text;
  }
}

TEST_F(GenerationDevice, GrammarsKnowControlTokensThatAreShown) {
  GenerationOptions options = greedy(10);
  options.grammar = Grammar::parse(R"(root ::= "<s>")");
  options.sampler.logit_bias = {{1, 1000.0f}};                   // <s>
  EXPECT_GT(cpu().generate("Lily", options).tokens.size(), 1u);  // by letters
  options.show_special = true;
  const Generation result = cpu().generate("Lily", options);
  EXPECT_EQ(result.tokens, std::vector<int32_t>{1});
  EXPECT_EQ(result.text, "<s>");
}

TEST_F(GenerationDevice, ZeroTokensIsNoText) {
  const Generation result = cpu().generate("Once upon a time", greedy(0));
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(result.reason, StopReason::max_tokens);
}

TEST_F(GenerationDevice, ScoresAreLogProbabilities) {
  const std::vector<TokenScore> scores = cpu().score("Once upon a time", 3);
  ASSERT_EQ(scores.size(), 5u);
  EXPECT_FALSE(scores[0].logprob.has_value());
  const auto expected = test::expected_text("stories260K.once", "stories260K.once.f32");
  for (size_t i = 1; i < scores.size(); ++i) {
    const auto row = std::span(expected.logits).subspan((i - 1) * 512, 512);
    double sum = 0;
    for (const float each : row) sum += std::exp(static_cast<double>(each));
    EXPECT_EQ(scores[i].id, expected.ids[i]);
    EXPECT_NEAR(*scores[i].logprob, row[static_cast<size_t>(scores[i].id)] - std::log(sum), 2e-3);
    ASSERT_EQ(scores[i].top.size(), 3u);
    EXPECT_EQ(scores[i].top[0].id, std::ranges::max_element(row) - row.begin());
    EXPECT_GE(scores[i].top[0].logprob, scores[i].top[1].logprob);
  }
}

TEST_F(GenerationDevice, PerplexityIsThatOfTheScores) {
  const std::vector<int32_t> ids = expected_ids();
  // One window with a leading token: its second half, computed by hand.
  const std::vector<int32_t> text(ids.begin() + 1, ids.begin() + 40);
  const Perplexity result = perplexity(cpu().model(), text, 40, ids[0]);
  const std::vector<TokenScore> scores = score_tokens(cpu().model(), std::span(ids).first(40), 0);
  double sum = 0;
  for (size_t i = 20; i < 40; ++i) sum -= *scores[i].logprob;
  EXPECT_EQ(result.tokens, 20);
  EXPECT_NEAR(result.value, std::exp(sum / 20), 1e-3 * result.value);
  EXPECT_THROW(perplexity(cpu().model(), text, 64, ids[0]), Error);
  cpu().forget_cache();
}

TEST_F(GenerationDevice, EmbeddingsHaveLengthOne) {
  const std::vector<std::string> texts = {"a cat", "Once upon a time", "a cat"};
  const auto vectors = cpu().embed(texts);
  ASSERT_EQ(vectors.size(), 3u);
  double square = 0, same = 0;
  for (size_t i = 0; i < vectors[0].size(); ++i) {
    square += static_cast<double>(vectors[1][i]) * vectors[1][i];
    same += static_cast<double>(vectors[0][i]) * vectors[2][i];
  }
  EXPECT_NEAR(square, 1, 1e-5);
  EXPECT_NEAR(same, 1, 1e-5);
  EXPECT_NE(vectors[0], vectors[1]);
  EXPECT_THROW(cpu().embed(std::vector<std::string>{std::string(4000, 'x')}), Error);
}

TEST_F(GenerationDevice, WhatACallbackThrowsComesOut) {
  EXPECT_THROW(cpu().generate("Once upon a time", greedy(60),
                              [](std::string_view) -> bool { throw std::runtime_error("mine"); }),
               std::runtime_error);
  EXPECT_EQ(cpu().generate("Once upon a time", greedy(60)).text, expected_tail());
}

}  // namespace
}  // namespace prism::llm
