// Tests that texts generated at once are independent: failures, cancellation, pieces with tokens
// and scores, tokens chosen by the host, and the order in which prompts are read.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>

#include "llm/generate/ngram_proposer.h"
#include "llm/generate/scheduler.h"
#include "llm/model/decode.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "support/devices/devices.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"

namespace prism::llm {
namespace {

using test::greedy;

class RequestsDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (path().empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  static std::string path() { return test::shared_model("stories260K"); }
  static LanguageModel load(const Device& device, int64_t slots = 3, int64_t context = 256) {
    const GgufFile file = GgufFile::open(path());
    LoadOptions options;
    options.slots = slots;
    options.batch_rows = 64;
    return LanguageModel::load(path(), place_on(file, device, context, DType::f32), options);
  }
};

TEST_F(RequestsDevice, AFailureBelongsToOneText) {
  LanguageModel model = load(Device::cpu()), alone = load(Device::cpu(), 1);
  const std::string too_long(5000, 'a');
  int calls = 0;
  std::vector<TextRequest> requests = {
      {"Once upon a time", greedy(20), {}},
      {"Lily and Tom", greedy(20),
       [&](std::string_view) -> bool {
         if (++calls == 3) throw std::runtime_error("the caller's own");
         return true;
       }},
      {too_long, greedy(20), {}},
      {"The dog", greedy(30), {}},
  };
  const std::vector<Generation> results = model.generate_all(requests);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].text, alone.generate("Once upon a time", greedy(20)).text);
  EXPECT_EQ(results[3].text, alone.generate("The dog", greedy(30)).text);
  EXPECT_EQ(results[1].reason, StopReason::failed);
  EXPECT_EQ(results[1].tokens.size(), 3u);
  EXPECT_THROW(std::rethrow_exception(results[1].failure), std::runtime_error);
  EXPECT_EQ(results[2].reason, StopReason::failed);
  EXPECT_THROW(std::rethrow_exception(results[2].failure), Error);
  // Nothing is left of the failed texts: the callback is not called again.
  EXPECT_EQ(model.generate("The dog", greedy(30)).text, results[3].text);
  EXPECT_EQ(calls, 3);
  EXPECT_THROW(model.generate("Once", greedy(20),
                              [](std::string_view) -> bool { throw std::runtime_error("own"); }),
               std::runtime_error);
}

TEST_F(RequestsDevice, ATokenOutsideTheVocabularyIsRefused) {
  LanguageModel model = load(Device::cpu());
  EXPECT_THROW(model.add(std::vector<int32_t>{1, 100000}), Error);
  EXPECT_THROW(model.add(std::vector<int32_t>{-1}), Error);
  EXPECT_THROW(model.add(std::vector<int32_t>{}), Error);
  EXPECT_FALSE(model.step());
}

TEST_F(RequestsDevice, OneTextIsCancelledAndTheOthersGoOn) {
  LanguageModel model = load(Device::cpu(), 2), alone = load(Device::cpu(), 1);
  const int64_t first = model.add({"Once upon a time", greedy(40), {}});
  const int64_t second = model.add({"Lily and Tom", greedy(40), {}});
  const int64_t waiting = model.add({"The dog", greedy(40), {}});
  const int64_t never = model.add({"A big bird", greedy(40), {}});
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(model.step());
  model.cancel(second);
  model.cancel(never);
  while (model.step()) {
  }
  const Generation cancelled = model.take(second);
  EXPECT_EQ(cancelled.reason, StopReason::cancelled);
  EXPECT_GT(cancelled.tokens.size(), 0u);
  EXPECT_LT(cancelled.tokens.size(), 40u);
  EXPECT_EQ(model.take(never).tokens.size(), 0u);
  EXPECT_EQ(model.take(first).text, alone.generate("Once upon a time", greedy(40)).text);
  EXPECT_EQ(model.take(waiting).text, alone.generate("The dog", greedy(40)).text);
  model.cancel(first);  // it has finished: nothing happens
  EXPECT_EQ(model.generate("The dog", greedy(5)).tokens.size(), 5u);
}

TEST_F(RequestsDevice, PiecesHaveTokensAndScores) {
  for (const Device& device : test::every_device()) {
    LanguageModel model = load(device);
    GenerationOptions options = greedy(25);
    options.scores = 3;
    std::vector<int32_t> tokens;
    std::vector<TokenScore> scores;
    std::string text;
    const Generation result =
        model.generate("Once upon a time", options, [&](const TextPiece& piece) {
          text += piece.text;
          EXPECT_EQ(piece.tokens.size(), piece.scores.size());
          tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
          scores.insert(scores.end(), piece.scores.begin(), piece.scores.end());
          return true;
        });
    EXPECT_EQ(text, result.text) << device.id();
    EXPECT_EQ(tokens, result.tokens) << device.id();
    ASSERT_EQ(scores.size(), 25u);
    ASSERT_EQ(result.scores.size(), 25u);
    // The same as scoring the whole text.
    const std::vector<TokenScore> whole = model.score("Once upon a time" + result.text, 3);
    ASSERT_EQ(whole.size(), 30u);
    for (size_t i = 0; i < 25; ++i) {
      EXPECT_EQ(scores[i].id, tokens[i]);
      EXPECT_EQ(whole[i + 5].id, tokens[i]);
      EXPECT_NEAR(*scores[i].logprob, *whole[i + 5].logprob, 1e-4) << device.id();
      ASSERT_EQ(scores[i].top.size(), 3u);
      EXPECT_EQ(scores[i].top[0].id, tokens[i]);  // greedy
    }
    // Scores do not change the text.
    EXPECT_EQ(model.generate("Once upon a time", greedy(25)).text, result.text);
  }
}

TEST_F(RequestsDevice, ADecodeLoopTakesTokensOfTheHost) {
  const std::vector<int32_t> expected =
      test::expected_text("stories260K.once", "stories260K.once.f32").ids;
  const GgufFile file = GgufFile::open(path());
  for (const Device& device : test::every_device()) {
    Model model =
        Model::load(file, {.placement = place_on(file, device, 80, DType::f32), .slots = 2});
    for (int32_t slot = 0; slot < 2; ++slot) model.prefill(slot, 0, std::span(expected).first(4));
    DecodeLoop loop(model);
    loop.start({{.slot = 0, .position = 4, .token = expected[4]},
                {.slot = 1, .position = 4, .token = expected[4], .on_host = true}});
    EXPECT_THROW(loop.logits(0), Error);
    bool differs = false;  // another token than the likeliest changes what follows
    for (size_t i = 5; i < 20; ++i) {
      loop.queue_step();
      EXPECT_EQ(loop.read(loop.queued() - 1)[0], expected[i]) << device.id();
      const std::vector<float> logits = loop.logits(1);
      ASSERT_EQ(logits.size(), 512u);
      const auto best = std::ranges::max_element(logits) - logits.begin();
      if (i <= 10)
        EXPECT_EQ(best, expected[i]) << device.id() << " " << i;
      else
        differs = differs || best != expected[i];
      EXPECT_THROW(loop.queue_step(), Error);
      loop.set_token(1, i == 10 ? 100 : static_cast<int32_t>(best));
      EXPECT_THROW(loop.set_token(1, 512), Error);
    }
    EXPECT_TRUE(differs) << device.id();
  }
}

TEST_F(RequestsDevice, ALongPromptDoesNotHoldBackTheOthers) {
  LanguageModel model = load(Device::cpu(), 3, 512);
  model.set_step_limit(1e-7);  // prompts are read in the smallest parts
  int tokens = 0;
  const int64_t talking = model.add({"Once upon a time", greedy(60), [&](std::string_view) {
                                       ++tokens;
                                       return true;
                                     }});
  for (int i = 0; i < 3; ++i) model.step();
  const int before = tokens;
  std::string longer;
  for (int i = 0; i < 20; ++i) longer += "Once upon a time, there was a little girl. ";
  const int64_t first = model.add({longer, greedy(1), {}});
  const int64_t second = model.add({"The " + longer, greedy(1), {}});
  int steps = 0, first_done = 0, second_done = 0;
  while (!model.is_finished(first) || !model.is_finished(second)) {
    model.step();
    ++steps;
    if (!first_done && model.is_finished(first)) first_done = steps;
    if (!second_done && model.is_finished(second)) second_done = steps;
  }
  const auto rows = static_cast<int>(model.tokenizer().encode(longer).size());
  EXPECT_GE(steps, 2 * rows / 64);
  EXPECT_GE(tokens - before, std::min(steps, 60 - before) - 2);
  // They take turns, so neither waits for the other's end.
  EXPECT_LE(std::abs(first_done - second_done), 2);
  EXPECT_EQ(model.take(first).tokens,
            load(Device::cpu(), 1, 512).generate(longer, greedy(1)).tokens);
  while (model.step()) {
  }
  EXPECT_EQ(model.take(talking).tokens.size(), 60u);
}

// More texts than a batch has rows: a prompt and each of the texts get some of them in turn.
TEST_F(RequestsDevice, ABatchMayHaveFewerRowsThanThereAreTexts) {
  const GgufFile file = GgufFile::open(path());
  const Tokenizer tokenizer = Tokenizer::from(file);
  const std::string prompt = "Lily and Tom and a little girl and a big red ball and the dog";
  const auto expected = load(Device::cpu(), 1).generate(prompt, greedy(5)).tokens;
  for (const bool speculates : {false, true}) {
    Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 256, DType::f32),
                                     .slots = 13,
                                     .batch_rows = 8});
    Scheduler scheduler(model, tokenizer);
    if (speculates)
      scheduler.set_proposer(std::make_unique<NgramProposer>(), SpeculationPolicy::always);
    std::vector<int> pieces(12);
    for (int& each : pieces) {  // a text with a prompt of one token decodes at once
      GenerationRequest talk{{1}, greedy(150), [&each](const TextPiece&) { return ++each, true; }};
      talk.options.ignore_end = true;
      scheduler.add(std::move(talk));
    }
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(scheduler.step());
    const std::vector<int> before = pieces;
    EXPECT_GT(std::ranges::min(before), 20);
    const int64_t last = scheduler.add({tokenizer.encode(prompt), greedy(5), {}});
    while (!scheduler.is_finished(last)) ASSERT_TRUE(scheduler.step());
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_GT(pieces[i], before[i]) << i;
      EXPECT_LT(pieces[i], 100) << i << ": the prompt waited for the end of other texts";
    }
    EXPECT_EQ(scheduler.take(last).tokens, expected);
  }
}

TEST_F(RequestsDevice, TheReadingOfAPromptIsReported) {
  LanguageModel model = load(Device::cpu(), 1, 512);
  std::string longer;
  for (int i = 0; i < 20; ++i) longer += "Once upon a time, there was a little girl. ";
  const std::vector<int32_t> prompt = model.tokenizer().encode(longer);
  const auto length = std::ssize(prompt);
  ASSERT_GT(length, 3 * 64);  // several batches
  std::vector<PromptProgress> seen;
  GenerationOptions options = greedy(5);
  options.on_prompt = [&](const PromptProgress& progress) { seen.push_back(progress); };
  const Generation text = model.generate(prompt, options);
  ASSERT_EQ(std::ssize(seen), 1 + (length + 63) / 64);
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].tokens, length);
    EXPECT_EQ(seen[i].reused, 0);
    EXPECT_EQ(seen[i].read, std::min<int64_t>(64 * static_cast<int64_t>(i), length));
    EXPECT_GE(seen[i].seconds, seen[std::max<size_t>(i, 1) - 1].seconds);
  }
  EXPECT_EQ(text.tokens, model.generate(prompt, greedy(5)).tokens);

  // The beginning is in the cache now.
  seen.clear();
  model.generate(prompt, options);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_GT(seen[0].reused, 0);
  EXPECT_EQ(seen[0].read, seen[0].reused);
  EXPECT_EQ(seen.back().read, length);

  // What the callback throws ends the text, after any part.
  for (const size_t part : {1u, 2u, 3u}) {
    model.forget_cache();
    seen.clear();
    options.on_prompt = [&](const PromptProgress& progress) {
      seen.push_back(progress);
      if (seen.size() == part) throw std::runtime_error("the caller's own");
    };
    EXPECT_THROW(model.generate(prompt, options), std::runtime_error);
    EXPECT_EQ(seen.size(), part);
  }
  EXPECT_EQ(text.tokens, model.generate(prompt, greedy(5)).tokens);
}

// 16 prompts of 100 tokens do not fit into one batch: some are whole after it, in the order in
// which they came, and the rest after the second.
TEST_F(RequestsDevice, TheFirstOfManyPromptsAreAnsweredAfterOneStep) {
  const GgufFile file = GgufFile::open(path());
  const Tokenizer tokenizer = Tokenizer::from(file);
  Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 256, DType::f32),
                                   .slots = 16,
                                   .batch_rows = 1024});
  Scheduler scheduler(model, tokenizer);
  std::vector<int64_t> ids;
  for (int32_t i = 0; i < 16; ++i) {
    std::vector<int32_t> prompt(100, 300);
    prompt[0] = 400 + i;
    ids.push_back(scheduler.add({std::move(prompt), greedy(1), {}}));
  }
  const auto finished = [&] {
    return std::ranges::count_if(ids, [&](int64_t id) { return scheduler.is_finished(id); });
  };
  scheduler.step();
  EXPECT_GE(finished(), 8);
  EXPECT_LT(finished(), 16);
  for (const int64_t id : {ids[0], ids[7]}) EXPECT_TRUE(scheduler.is_finished(id));
  scheduler.step();
  EXPECT_EQ(finished(), 16);
}

TEST_F(RequestsDevice, TextsDecodeTogether) {
  // The cache has just the blocks that the texts need, and keeps prefixes of the texts before.
  LoadOptions options;
  options.slots = 64;
  const GgufFile file = GgufFile::open(path());
  LanguageModel model =
      LanguageModel::load(path(), place_on(file, Device::cpu(), 88, DType::f32), options);
  int32_t next = 3;
  for (int round = 0; round < 3; ++round) {
    std::vector<int64_t> ids;
    for (int i = 0; i < 64; ++i) {
      std::vector<int32_t> prompt;
      for (int t = 0; t < 16; ++t) prompt.push_back(next = (next * 31 + 7) % 509 + 3);
      GenerationOptions text = greedy(40);
      text.ignore_end = true;
      ids.push_back(model.add(prompt, text));
    }
    int steps = 0;
    while (model.step()) ++steps;
    EXPECT_LE(steps, 50) << round;
    for (const int64_t id : ids) EXPECT_EQ(model.take(id).tokens.size(), 40u);
  }
}

TEST_F(RequestsDevice, EmbeddingsAndScoresDisturbNoText) {
  const std::vector<std::string> inputs(6, "The dog ran to the park.");
  for (const Device& device : test::every_device()) {
    SCOPED_TRACE(device.id());
    LanguageModel model = load(device, 4), alone = load(device, 2);
    const std::vector<std::vector<float>> vectors = alone.embed(inputs);
    const std::vector<TokenScore> scores = alone.score("The dog ran");
    const int64_t first = model.add({"Once upon a time", greedy(40), {}});
    const int64_t second = model.add({"Lily and Tom", greedy(40), {}});
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(model.step());
    const std::vector<std::vector<float>> made = model.embed(inputs);
    ASSERT_EQ(made.size(), inputs.size());
    for (size_t i = 0; i < made.size(); ++i)
      for (size_t c = 0; c < made[i].size(); ++c) ASSERT_NEAR(made[i][c], vectors[i][c], 1e-4);
    const std::vector<TokenScore> beside = model.score("The dog ran");
    ASSERT_EQ(beside.size(), scores.size());
    EXPECT_NEAR(*beside.back().logprob, *scores.back().logprob, 1e-4);
    while (model.step()) {
    }
    for (const auto& [id, prompt] :
         {std::pair(first, "Once upon a time"), {second, "Lily and Tom"}}) {
      const Generation text = model.take(id);
      EXPECT_EQ(text.statistics.recomputed_tokens, 0);
      EXPECT_EQ(text.text, alone.generate(prompt, greedy(40)).text);
    }
    // The prompts are still cached.
    EXPECT_GT(model.generate("Once upon a time", greedy(1)).statistics.reused_tokens, 0);
  }
}

TEST_F(RequestsDevice, AnEmbeddingWithoutFreeBlocksMakesATextWait) {
  LanguageModel model = load(Device::cpu(), 1, 256), alone = load(Device::cpu(), 1, 256);
  GenerationOptions options = greedy(200);
  options.ignore_end = true;
  const int64_t id = model.add({"Once upon a time", options, {}});
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(model.step());  // both blocks of the cache
  EXPECT_EQ(model.embed(std::vector<std::string>{"A cat"}),
            alone.embed(std::vector<std::string>{"A cat"}));
  while (model.step()) {
  }
  const Generation text = model.take(id);
  EXPECT_GT(text.statistics.recomputed_tokens, 0);
  EXPECT_EQ(text.text, alone.generate("Once upon a time", options).text);
}

TEST_F(RequestsDevice, ATextLongerThanABatchIsEmbedded) {
  std::string longer;
  for (int i = 0; i < 10; ++i) longer += "Once upon a time, there was a little girl. ";
  LanguageModel model = load(Device::cpu());  // batches of 64
  LoadOptions options;
  options.batch_rows = 512;
  LanguageModel whole = LanguageModel::load(
      path(), place_on(GgufFile::open(path()), Device::cpu(), 256, DType::f32), options);
  ASSERT_GT(model.tokenizer().encode(longer).size(), 64u);
  const std::vector<float> parts = model.embed(std::vector{longer})[0];
  const std::vector<float> once = whole.embed(std::vector{longer})[0];
  ASSERT_EQ(parts.size(), once.size());
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_NEAR(parts[i], once[i], 1e-4);
}

}  // namespace
}  // namespace prism::llm
