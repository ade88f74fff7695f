// Tests that texts with speculation are those without: greedy and sampled, with every kind of
// sampler, alone and together, whatever is proposed.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "llm/generate/draft_model_proposer.h"
#include "llm/generate/ngram_proposer.h"
#include "llm/generate/scheduler.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "support/devices/devices.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/models/tiny_models.h"

namespace prism::llm {
namespace {

using test::greedy;
using Tokens = std::vector<int32_t>;

// Proposes the tokens of known texts, by prompt; every `wrong_every`-th token of the text is wrong.
class Oracle : public Proposer {
 public:
  Oracle(std::vector<Tokens> texts, size_t wrong_every)
      : texts_(std::move(texts)), wrong_every_(wrong_every) {}
  std::vector<Proposal> propose(std::span<const ProposalRequest> requests) override {
    std::vector<Proposal> proposals(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      const std::span<const int32_t> have = requests[i].tokens;
      for (const Tokens& text : texts_) {
        if (text.size() <= have.size() ||
            !std::ranges::equal(std::span(text).first(have.size()), have))
          continue;
        const auto count =
            std::min(text.size() - have.size(), static_cast<size_t>(requests[i].count));
        for (size_t at = have.size(); at < have.size() + count; ++at)
          proposals[i].tokens.push_back(
              wrong_every_ > 0 && at % wrong_every_ == 0 ? (text[at] + 1) % 300 : text[at]);
        break;
      }
    }
    return proposals;
  }
  bool is_free() const override { return true; }
  void forget(int64_t) override {}

 private:
  std::vector<Tokens> texts_;
  size_t wrong_every_;
};

class SpeculationDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (path().empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  static std::string path() { return test::shared_model("stories260K"); }
  static const GgufFile& file() {
    static const GgufFile opened = GgufFile::open(path());
    return opened;
  }
  static const Tokenizer& tokenizer() {
    static const Tokenizer made = Tokenizer::from(file());
    return made;
  }
  static Model load(const Device& device, int64_t slots, int64_t context = 128,
                    int64_t cache_positions = 0) {
    return Model::load(file(), {.placement = place_on(file(), device, context, DType::f32),
                                .slots = slots,
                                .cache_positions = cache_positions,
                                .cache_block = 4,
                                .batch_rows = 64});
  }
  struct Text {
    std::string prompt;
    GenerationOptions options;
    TextCallback on_text = {};
  };
  static std::vector<Generation> generate(Scheduler& scheduler, const std::vector<Text>& texts) {
    std::vector<int64_t> ids;
    for (const Text& each : texts)
      ids.push_back(scheduler.add({tokenizer().encode(each.prompt), each.options, each.on_text}));
    scheduler.run();
    std::vector<Generation> results;
    for (const int64_t id : ids) results.push_back(scheduler.take(id));
    return results;
  }
  static std::vector<Generation> without(const Device& device, const std::vector<Text>& texts,
                                         int64_t context = 128) {
    Model model = load(device, std::ssize(texts), context);
    Scheduler scheduler(model, tokenizer());
    return generate(scheduler, texts);
  }
  // Prompts with their answers, for an Oracle.
  static std::vector<Tokens> whole(const std::vector<Text>& texts,
                                   const std::vector<Generation>& answers) {
    std::vector<Tokens> all;
    for (size_t i = 0; i < texts.size(); ++i) {
      all.push_back(tokenizer().encode(texts[i].prompt));
      all.back().insert(all.back().end(), answers[i].tokens.begin(), answers[i].tokens.end());
    }
    return all;
  }
  static void expect_same(const std::vector<Generation>& got, const std::vector<Generation>& wanted,
                          const std::string& where) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].tokens, wanted[i].tokens) << where << ", text " << i;
      EXPECT_EQ(got[i].text, wanted[i].text) << where << ", text " << i;
      EXPECT_EQ(got[i].reason, wanted[i].reason) << where << ", text " << i;
      EXPECT_EQ(got[i].statistics.generated_tokens, wanted[i].statistics.generated_tokens);
      ASSERT_EQ(got[i].scores.size(), wanted[i].scores.size());
      for (size_t t = 0; t < got[i].scores.size(); ++t)
        EXPECT_NEAR(*got[i].scores[t].logprob, *wanted[i].scores[t].logprob, 1e-4);
    }
  }
  // One text for each way to choose tokens.
  static std::vector<Text> every_sampler() {
    std::vector<Text> texts = {{"Once upon a time", greedy(40)}, {"Lily and Tom", greedy(40)},
                               {"The dog", greedy(40)},          {"A", greedy(40)},
                               {"One day", greedy(40)},          {"Tom saw a", greedy(40)}};
    SamplerOptions& sampled = texts[1].options.sampler;
    sampled.temperature = 0.9f;
    sampled.seed = 7;
    SamplerOptions& mirostat = texts[2].options.sampler;
    mirostat.temperature = 0.8f;
    mirostat.mirostat = 2;
    mirostat.penalties.presence = 0.5f;
    texts[3].options.grammar = Grammar::parse(R"(root ::= " " [a-z]{2,9} (" " [a-z]+){9})");
    SamplerOptions& biased = texts[4].options.sampler;
    biased.temperature = 1;
    biased.logit_bias = {{300, 2.0f}};
    biased.dry.multiplier = 0.8f;
    biased.xtc_probability = 0.5f;
    texts[4].options.scores = 2;
    texts[5].options.stop = {"was"};
    texts[5].options.scores = 0;
    return texts;
  }
};

TEST_F(SpeculationDevice, GreedyTextsAreTheSame) {
  const std::vector<Text> texts = {{"Once upon a time", greedy(60)}};
  for (const Device& device : test::every_device()) {
    const std::vector<Generation> wanted = without(device, texts);
    EXPECT_EQ(wanted[0].statistics.proposed_tokens, 0);
    for (const size_t wrong_every : {0, 1, 2, 5}) {
      Model model = load(device, 1);
      Scheduler scheduler(model, tokenizer());
      scheduler.set_proposer(std::make_unique<Oracle>(whole(texts, wanted), wrong_every),
                             SpeculationPolicy::always);
      const std::vector<Generation> got = generate(scheduler, texts);
      expect_same(got, wanted, device.id());
      const GenerationStatistics& s = got[0].statistics;
      EXPECT_GT(s.proposed_tokens, 0);
      if (wrong_every == 0) {
        EXPECT_EQ(s.accepted_tokens, s.proposed_tokens);
      }
      if (wrong_every == 1) {
        EXPECT_EQ(s.accepted_tokens, 0);
      }
      if (wrong_every == 5) {
        EXPECT_GT(s.accepted_tokens, 30);
      }
    }
  }
}

// On the CPU, rows that are checked together have the bits of single steps. Activations are rounded
// to 8 bits, so that a difference in the last bit would soon become a difference between tokens.
TEST_F(SpeculationDevice, FewRowsOnTheCpuAreExact) {
  const std::string quantised = test::shared_model("stories15M-q8_0");
  if (quantised.empty()) GTEST_SKIP() << "needs ../shared/models/stories15M-q8_0.gguf";
  const GgufFile opened = GgufFile::open(quantised);
  Model model =
      Model::load(opened, {.placement = place_on(opened, Device::cpu(), 256), .slots = 2});
  Tokens tokens;
  for (int32_t i = 0; i < 60; ++i) tokens.push_back((i * 7919 + 13) % 31000 + 3);
  const auto logits = [&](int32_t slot, size_t first, size_t count) {
    const SequencePart part{slot, static_cast<int32_t>(first),
                            std::span(tokens).subspan(first, count), Wanted::all};
    return model.forward(std::span(&part, 1)).to_vector<float>();
  };
  const auto most = static_cast<size_t>(model.rows_alike(1));
  ASSERT_GE(most, 4u);
  ASSERT_LE(most, 12u);
  model.prefill(0, 0, std::span(tokens).first(20));
  std::vector<float> alone;
  for (size_t at = 20; at < tokens.size(); ++at) {
    const std::vector<float> row = logits(0, at, 1);
    alone.insert(alone.end(), row.begin(), row.end());
  }
  for (const size_t rows : {size_t{2}, size_t{4}, most - 1, most}) {
    model.prefill(1, 0, std::span(tokens).first(20));
    std::vector<float> together;
    for (size_t at = 20; at < tokens.size(); at += rows) {
      const std::vector<float> several = logits(1, at, std::min(rows, tokens.size() - at));
      together.insert(together.end(), several.begin(), several.end());
    }
    EXPECT_TRUE(together == alone) << rows << " rows";
  }
}

TEST_F(SpeculationDevice, EverySamplerChoosesTheSameTokens) {
  const std::vector<Text> texts = every_sampler();
  for (const Device& device : {Device::cpu()}) {
    const std::vector<Generation> wanted = without(device, texts);
    for (const size_t wrong_every : {0, 3}) {
      Model model = load(device, 6);
      Scheduler scheduler(model, tokenizer());
      scheduler.set_proposer(std::make_unique<Oracle>(whole(texts, wanted), wrong_every),
                             SpeculationPolicy::always);
      const std::vector<Generation> got = generate(scheduler, texts);
      expect_same(got, wanted, device.id());
      for (const Generation& each : got) {
        const bool is_long = each.tokens.size() > 10;
        EXPECT_GT(each.statistics.accepted_tokens, is_long ? 4 : -1);
      }
      // Nothing is lost: what no text uses can be evicted.
      scheduler.forget_cache();
      EXPECT_EQ(model.cache().blocks(0).free(), model.cache().blocks(0).count()) << device.id();
    }
  }
}

TEST_F(SpeculationDevice, TextsEndWhereTheyWould) {
  const Device device = Device::cpu();
  std::vector<Text> texts = {{"Once upon a time", greedy(7)},
                             {"Lily and Tom", greedy(-1)},
                             {"The dog", greedy(100)},
                             {"A", greedy(1)}};
  texts[2].options.shift_context = true;
  int calls = 0;
  texts.push_back({"One day", greedy(30), [&](std::string_view) { return ++calls % 5 != 0; }});
  const std::vector<Generation> wanted = without(device, texts, 64);
  EXPECT_EQ(wanted[1].reason, StopReason::context);
  EXPECT_EQ(wanted[4].reason, StopReason::cancelled);
  Model model = load(device, 5, 64);
  Scheduler scheduler(model, tokenizer());
  scheduler.set_proposer(std::make_unique<Oracle>(whole(texts, wanted), 0),
                         SpeculationPolicy::always);
  expect_same(generate(scheduler, texts), wanted, "at the end");
  EXPECT_EQ(calls, 10);
}

// Texts give up their blocks for each other, and proposals where there are no blocks for them.
TEST_F(SpeculationDevice, TextsShareTheBlocksThereAre) {
  const std::vector<Text> texts = {{"Once upon a time", greedy(50)},
                                   {"Lily and Tom", greedy(50)},
                                   {"The dog", greedy(50)},
                                   {"One day, a big bird saw", greedy(50)},
                                   {"A", greedy(50)}};
  for (const Device& device : {Device::cpu()}) {
    const std::vector<Generation> wanted = without(device, texts, 80);
    Model model = load(device, 4, 80, 120);
    Scheduler scheduler(model, tokenizer());
    scheduler.set_proposer(std::make_unique<Oracle>(whole(texts, wanted), 4),
                           SpeculationPolicy::always);
    const std::vector<Generation> got = generate(scheduler, texts);
    expect_same(got, wanted, device.id());
    int64_t recomputed = 0;
    for (const Generation& each : got) recomputed += each.statistics.recomputed_tokens;
    EXPECT_GT(recomputed, 0) << device.id();
    scheduler.forget_cache();
    EXPECT_EQ(model.cache().blocks(0).free(), model.cache().blocks(0).count()) << device.id();
  }
}

TEST_F(SpeculationDevice, CacheMovesAndCancellationsBetweenSteps) {
  const std::vector<Text> texts = every_sampler();
  const std::vector<Generation> wanted = without(Device::cpu(), texts);
  Model model = load(Device::cpu(), 3);  // some wait
  Scheduler scheduler(model, tokenizer());
  scheduler.set_proposer(std::make_unique<Oracle>(whole(texts, wanted), 3),
                         SpeculationPolicy::always);
  std::vector<int64_t> ids;
  for (const Text& each : texts)
    ids.push_back(scheduler.add({tokenizer().encode(each.prompt), each.options, {}}));
  const int64_t cancelled = scheduler.add({tokenizer().encode("Lily"), greedy(90), {}});
  for (int step = 0; scheduler.step(); ++step) {
    if (step % 4 == 3) scheduler.leave_devices();  // as after a device was lost
    if (step == 5) scheduler.cancel(cancelled);
  }
  EXPECT_EQ(scheduler.take(cancelled).reason, StopReason::cancelled);
  std::vector<Generation> got;
  for (const int64_t id : ids) got.push_back(scheduler.take(id));
  expect_same(got, wanted, "after moves");
}

// A prompt that contains its answer: look-up finds it, and the tokens are the same.
TEST_F(SpeculationDevice, LookUpFindsRepetitions) {
  const std::string story =
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
      "park. One day, she saw a big, red ball. She wanted to play with it. ";
  const std::vector<Text> texts = {{story + story + story + "Once upon a time, there", greedy(60)}};
  for (const Device& device : {Device::cpu()}) {
    const std::vector<Generation> wanted = without(device, texts, 512);
    Model model = load(device, 1, 512);
    Scheduler scheduler(model, tokenizer());
    scheduler.set_proposer(std::make_unique<NgramProposer>(), SpeculationPolicy::always);
    const std::vector<Generation> got = generate(scheduler, texts);
    expect_same(got, wanted, device.id());
    EXPECT_GT(got[0].statistics.accepted_tokens, 15) << device.id();
    // A text can do without.
    std::vector<Text> plain = texts;
    plain[0].options.speculate = false;
    EXPECT_EQ(generate(scheduler, plain)[0].statistics.proposed_tokens, 0);
  }
}

// Windowed layers forget positions; what was rejected is never needed.
TEST_F(SpeculationDevice, WindowedLayers) {
  for (const char* architecture : {"gemma2", "gemma3", "gpt-oss"}) {
    const auto tiny = test::tiny_model(architecture);
    const GgufFile opened = tiny->open();
    const Tokenizer letters = Tokenizer::from(opened);
    const auto run = [&](std::unique_ptr<Proposer> proposer) {
      Model model =
          Model::load(opened, {.placement = place_on(opened, Device::cpu(), 64, DType::f32),
                               .cache_block = 4,
                               .batch_rows = 32});
      Scheduler scheduler(model, letters);
      scheduler.set_proposer(std::move(proposer), SpeculationPolicy::always);
      GenerationOptions options = greedy(50);
      options.ignore_end = true;
      const int64_t id = scheduler.add({letters.encode("abc"), options, {}});
      scheduler.run();
      return scheduler.take(id);
    };
    const Generation wanted = run(nullptr);
    Tokens all = letters.encode("abc");
    all.insert(all.end(), wanted.tokens.begin(), wanted.tokens.end());
    const Generation got = run(std::make_unique<Oracle>(std::vector<Tokens>{all}, 4));
    EXPECT_EQ(got.tokens, wanted.tokens) << architecture;
    EXPECT_GT(got.statistics.accepted_tokens, 20) << architecture;
  }
}

// The tokens of 2,000 seeds against probabilities that the sampler enumerates, with proposals that
// are right for some seeds and wrong for others.
TEST_F(SpeculationDevice, SampledTokensFollowTheirProbabilities) {
  const Device device = Device::cpu();
  const Tokens prompt = tokenizer().encode("Once upon a time, there was a");
  GenerationOptions options;
  options.max_tokens = 2;
  options.ignore_end = true;
  options.sampler = {.temperature = 1.5f, .top_k = 4, .top_p = 1, .min_p = 0};

  Model model = load(device, 8);
  const auto probabilities = [&](const Tokens& tokens) {
    model.cache().truncate(0, 0);
    return Sampler(options.sampler).distribution(model.prefill(0, 0, tokens).to_vector<float>());
  };
  std::map<std::pair<int32_t, int32_t>, double> expected, counts;
  std::vector<Tokens> proposed;  // after each first token, its second and its last continuation
  for (const auto& [first, p] : probabilities(prompt)) {
    Tokens after = prompt;
    after.push_back(first);
    const auto next = probabilities(after);
    for (const auto& [second, q] : next) expected[{first, second}] = p * q;
    after.push_back(next[proposed.size() % next.size()].first);
    after.push_back(1);
    proposed.push_back(after);
  }
  model.cache().truncate(0, 0);
  // The device samples some of the texts, the host the others.
  for (const bool on_host : {false, true}) {
    Scheduler scheduler(model, tokenizer());
    scheduler.set_proposer(std::make_unique<Oracle>(proposed, 0), SpeculationPolicy::always);
    constexpr int kTexts = 2000;
    std::vector<int64_t> ids;
    options.scores = on_host ? 0 : -1;
    options.max_tokens = 3;
    for (int seed = 0; seed < kTexts; ++seed) {
      options.sampler.seed = static_cast<uint64_t>(seed);
      ids.push_back(scheduler.add({prompt, options, {}}));
    }
    scheduler.run();
    counts.clear();
    int64_t accepted = 0, checked = 0;
    for (const int64_t id : ids) {
      const Generation result = scheduler.take(id);
      ++counts[{result.tokens[0], result.tokens[1]}];
      accepted += result.statistics.accepted_tokens;
      checked += result.statistics.proposed_tokens > 0;
    }
    // All but the few whose steps had parts of prompts were checked; some proposals were wrong.
    EXPECT_GT(checked, kTexts * 9 / 10);
    EXPECT_GT(accepted, kTexts / 2);
    EXPECT_LT(accepted, 2 * checked * 9 / 10);
    double chi_square = 0;
    for (const auto& [pair, p] : expected)
      chi_square += std::pow(counts[pair] - p * kTexts, 2) / (p * kTexts);
    EXPECT_EQ(counts.size(), expected.size());
    EXPECT_LT(chi_square, 37.7);  // 15 degrees of freedom: 0.1% of true samples are above
  }
}

TEST_F(SpeculationDevice, ADraftModelProposesItsOwnTokens) {
  const std::vector<Text> texts = every_sampler();
  for (const Device& device : {Device::cpu()}) {
    const std::vector<Generation> wanted = without(device, texts);
    Model model = load(device, 6);
    Scheduler scheduler(model, tokenizer());
    LoadOptions options;
    options.slots = 6;
    options.fit.device = device.id();
    options.fit.context = 128;
    options.fit.kv_type = DType::f32;
    scheduler.set_proposer(
        std::make_unique<DraftModelProposer>(GgufFile::open(path()), options, tokenizer()),
        SpeculationPolicy::always);
    for (int round = 0; round < 2; ++round) {
      const std::vector<Generation> got = generate(scheduler, texts);
      expect_same(got, wanted, device.id());
      // It is the same model, so plain texts accept all that it proposes, sampled ones too.
      for (const size_t i : {0, 1}) {
        const GenerationStatistics& s = got[i].statistics;
        EXPECT_GT(s.accepted_tokens, 30) << device.id();
        EXPECT_LE(s.proposed_tokens - s.accepted_tokens, 2) << device.id();
      }
    }
  }
}

TEST_F(SpeculationDevice, OptionsOfALanguageModel) {
  LoadOptions options;
  options.fit.device = "cpu";
  options.fit.context = 256;
  options.speculate = "ngram";
  LanguageModel looks_up = LanguageModel::load(path(), options);
  options.speculate = path();
  LanguageModel drafts = LanguageModel::load(path(), options);
  options.speculate = {};
  LanguageModel plain = LanguageModel::load(path(), options);
  const Generation wanted = plain.generate("Once upon a time", greedy(120));
  EXPECT_EQ(looks_up.generate("Once upon a time", greedy(120)).tokens, wanted.tokens);
  EXPECT_EQ(drafts.generate("Once upon a time", greedy(120)).tokens, wanted.tokens);
  options.speculate = "/nowhere/draft.gguf";
  EXPECT_THROW(LanguageModel::load(path(), options), Error);
  options.speculate = test::shared_model("stories15M-q8_0");
  if (options.speculate.empty()) return;
  try {
    LanguageModel::load(path(), options);
    ADD_FAILURE() << "a draft model with another vocabulary was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("vocabular"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace prism::llm
