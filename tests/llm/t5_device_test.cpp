// Compares T5 with its published definition in float64, with tiny random models on every device:
// several texts at once, whole, in chunks and token by token, and the texts that it writes.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "llm/generate/scheduler.h"
#include "llm/model/decode.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "support/devices/devices.h"
#include "support/models/tiny_model.h"
#include "support/models/tiny_t5.h"

namespace prism::llm {
namespace {

using test::expect_close;
using test::some_tokens;
using test::T5Kind;
using test::TinyT5;
using Tokens = std::vector<int32_t>;

constexpr int64_t kContext = 200;

struct Text {
  Tokens source, tokens;
};

// Texts of a token, of a few, and one that reaches beyond the last bucket of distances.
std::vector<Text> some_texts(const TinyT5& tiny) {
  const auto text = [&](int source, int tokens) {
    return Text{some_tokens(source, tiny.vocabulary), some_tokens(tokens, tiny.vocabulary)};
  };
  return {text(9, 13), text(1, 2), text(139, 19), text(6, 41)};
}

// Software devices take long to compile kernels: they get the models that no others are like.
std::vector<Device> devices(bool everywhere) {
  std::vector<Device> all = test::every_device();
  std::erase_if(all, [&](const Device& device) {
    return device.info().software && !device.info().is_cpu && !everywhere;
  });
  return all;
}

void expect_logits(const TinyT5& tiny, const Text& text, const Tensor& rows,
                   const std::string& what) {
  const auto wanted = tiny.logits(text.source, text.tokens);
  const std::vector<float> found = rows.to_vector<float>();
  ASSERT_EQ(found.size(), wanted.size() * wanted[0].size()) << what;
  for (size_t i = 0; i < wanted.size(); ++i)
    expect_close(std::span(found).subspan(i * wanted[i].size(), wanted[i].size()), wanted[i], 3e-4,
                 what + " token " + std::to_string(i));
}

void check(const T5Kind& kind, bool everywhere = false) {
  TinyT5 tiny(kind);
  const GgufFile file = tiny.open();
  const std::vector<Text> texts = some_texts(tiny);
  for (const Device& device : devices(everywhere)) {
    Model model =
        Model::load(file, {.placement = place_on(file, device, kContext, DType::f32), .slots = 4});
    // Two texts are encoded together, another while the first are decoded.
    const auto whole = [&](int32_t slot) {
      return SequencePart{slot, 0, texts[static_cast<size_t>(slot)].source, Wanted::none};
    };
    const auto part = [&](int32_t slot, size_t first, size_t count) {
      const Text& text = texts[static_cast<size_t>(slot)];
      return SequencePart{slot, static_cast<int32_t>(text.source.size() + first),
                          std::span(text.tokens).subspan(first, count), Wanted::all};
    };
    const SequencePart first[] = {whole(0), whole(2)};
    EXPECT_FALSE(model.forward(first));
    const SequencePart second[] = {part(2, 0, 19), whole(1)};
    expect_logits(tiny, texts[2], model.forward(second), device.id() + " beside another");
    const SequencePart third[] = {part(1, 0, 2), whole(3)};
    expect_logits(tiny, texts[1], model.forward(third), device.id() + " a short one");
    for (const size_t chunk : {13, 5, 1}) {
      std::vector<float> all;
      for (size_t at = 0; at < 13; at += chunk) {
        const SequencePart one = part(0, at, std::min<size_t>(chunk, 13 - at));
        const std::vector<float> rows = model.forward(std::span(&one, 1)).to_vector<float>();
        all.insert(all.end(), rows.begin(), rows.end());
      }
      expect_logits(tiny, texts[0], from_vector(all, {13, tiny.vocabulary}),
                    device.id() + " in chunks of " + std::to_string(chunk));
    }
    const SequencePart last = part(3, 0, 41);
    expect_logits(tiny, texts[3], model.forward(std::span(&last, 1)), device.id() + " the last");
    // The encoder's states are embeddings.
    const std::vector<std::vector<float>> vectors = model.embed(std::span(&texts[2].source, 1));
    expect_close(vectors[0], TinyT5::mean(tiny.encoded(texts[2].source)), 3e-4, device.id());
  }
}

TEST(T5, GatedOnEveryDevice) { check({}, true); }
TEST(T5, ReluAndTheEmbeddingAsOutput) {
  check({.gated = false, .tied = true, .decoder_layers = 1, .buckets = 32});
}
TEST(T5, BiasesInEveryLayer) { check({.biased = true, .decoder_layers = 2, .buckets = 20}); }

TEST(T5, TheEncoderAlone) {
  TinyT5 tiny({.decodes = false});
  const GgufFile file = tiny.open();
  const Tokens source = some_tokens(31, tiny.vocabulary);
  for (const Device& device : devices(false)) {
    Model model = Model::load(file, {.placement = place_on(file, device, kContext, DType::f32)});
    EXPECT_FALSE(model.config().has_decoder());
    expect_close(model.embed(std::span(&source, 1))[0], TinyT5::mean(tiny.encoded(source)), 3e-4,
                 device.id());
    EXPECT_THROW(model.prefill(0, 0, source), Error);
  }
}

// More texts than slots, whose prompts begin alike; blocks of the cache are reused.
TEST(T5, WritesWhatItsDefinitionDoes) {
  TinyT5 tiny({.letters = true});
  const std::string path = tiny.write();
  const std::vector<std::string> prompts = {"ab", "abc", "abcd efg hij", "q", "abc", "zyxwv"};
  const GgufFile file = GgufFile::open(path);
  for (const Device& device : devices(true)) {
    LanguageModel model = LanguageModel::load(path, place_on(file, device, 64, DType::f32),
                                              {.slots = 3, .speculate = "ngram"});
    for (const bool on_host : {false, true}) {
      std::vector<TextRequest> requests;
      for (const std::string& each : prompts) {
        TextRequest& request = requests.emplace_back(TextRequest{each, {}, {}});
        request.options.max_tokens = 11;
        request.options.sampler.temperature = 0;
        request.options.scores = on_host ? 0 : -1;
      }
      const std::vector<Generation> texts = model.generate_all(std::move(requests));
      for (size_t i = 0; i < prompts.size(); ++i) {
        const Tokens source = model.tokenizer().encode(prompts[i]);
        ASSERT_EQ(source.back(), TinyT5::kEnd);
        EXPECT_FALSE(texts[i].failure);
        EXPECT_EQ(texts[i].tokens, tiny.answer(source, 11)) << device.id() << " " << prompts[i];
        EXPECT_EQ(texts[i].statistics.prompt_tokens, std::ssize(source));
        EXPECT_EQ(texts[i].statistics.reused_tokens, 0);
      }
    }
  }
}

TEST(T5, AnswersEndWithTheContext) {
  TinyT5 tiny({.letters = true});
  const std::string path = tiny.write();
  const GgufFile file = GgufFile::open(path);
  LanguageModel model =
      LanguageModel::load(path, place_on(file, Device::cpu(), 24, DType::f32), {});
  GenerationOptions options;
  options.sampler.temperature = 0;
  options.ignore_end = true;
  options.max_tokens = 60;
  options.shift_context = true;  // which would change what the encoder saw
  const Generation text = model.generate("abcdefgh", options);
  EXPECT_EQ(text.reason, StopReason::context);
  EXPECT_EQ(text.statistics.shifts, 0);
  EXPECT_THROW(model.generate(std::string(30, 'a'), options), Error);
}

TEST(T5, ScoresAnAnswerToItsSource) {
  TinyT5 tiny({.letters = true});
  const std::string path = tiny.write();
  LanguageModel model =
      LanguageModel::load(path, place_on(GgufFile::open(path), Device::cpu(), 64, DType::f32), {});
  const auto log_probability = [](const TinyT5::Row& logits, int32_t token) {
    double sum = 0;
    for (const double each : logits) sum += std::exp(each);
    return logits[static_cast<size_t>(token)] - std::log(sum);
  };
  const Tokens source = model.tokenizer().encode("what is it"),
               answer = model.tokenizer().encode("a cat");
  Tokens tokens = {TinyT5::kStart};
  tokens.insert(tokens.end(), answer.begin(), answer.end());
  const auto wanted = tiny.logits(source, tokens);
  const std::vector<TokenScore> scores = model.score("a cat", 1, "what is it");
  ASSERT_EQ(scores.size(), answer.size());
  for (size_t i = 0; i < answer.size(); ++i) {
    EXPECT_EQ(scores[i].id, answer[i]);
    EXPECT_NEAR(*scores[i].logprob, log_probability(wanted[i], answer[i]), 1e-3);
  }
  // Plain tokens are what both parts see.
  const auto both = tiny.logits(source, source);
  const std::vector<TokenScore> own = model.score(std::span<const int32_t>(source), 0);
  ASSERT_EQ(own.size(), source.size());
  for (size_t i = 1; i < source.size(); ++i)
    EXPECT_NEAR(*own[i].logprob, log_probability(both[i - 1], source[i]), 1e-3);
}

TEST(T5, RefusesWhatHasNoMeaning) {
  TinyT5 tiny({});
  const GgufFile file = tiny.open();
  Model model = Model::load(
      file, {.placement = place_on(file, Device::cpu(), 64, DType::f32), .batch_rows = 16});
  const Tokens tokens = some_tokens(20, tiny.vocabulary);
  const auto refuses = [&](const SequencePart& part) {
    EXPECT_THROW(model.forward(std::span(&part, 1)), Error);
  };
  refuses({0, 3, std::span(tokens).first(2), Wanted::last});  // nothing is encoded
  refuses({0, 0, std::span(tokens).first(5), Wanted::last});  // logits of the encoder
  refuses({0, 0, tokens, Wanted::none});                      // longer than a batch
  const SequencePart whole{0, 0, std::span(tokens).first(5), Wanted::none};
  model.forward(std::span(&whole, 1));
  refuses({0, 4, std::span(tokens).first(2), Wanted::last});  // within what is encoded
  EXPECT_THROW(perplexity(model, tokens, 8, -1), Error);
  EXPECT_THROW(score_tokens(model, std::span(tokens).first(4), 0, tokens), Error);
  model.cache().truncate(0, 5);
  EXPECT_EQ(model.cache().encoded(0), 5);
  model.cache().truncate(0, 4);
  EXPECT_EQ(model.cache().encoded(0), 0);
}

}  // namespace
}  // namespace prism::llm
