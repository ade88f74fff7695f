// Compares DeepSeek V4 with its published definition in float64, with tiny random models on every
// device: whole texts, in chunks and token by token, and several texts at once.
#include <algorithm>

#include <gtest/gtest.h>

#include "llm/generate/scheduler.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "support/devices/devices.h"
#include "support/models/greedy.h"
#include "support/models/tiny_deepseek4.h"
#include "support/models/tiny_model.h"

namespace prism::llm {
namespace {

using test::DeepSeek4Kind;
using test::expect_close;
using test::some_tokens;
using test::TinyDeepSeek4;
using Tokens = std::vector<int32_t>;

// Software devices take long to compile kernels: they get the model with layers of all kinds.
std::vector<Device> devices(bool everywhere) {
  std::vector<Device> all = test::every_device();
  std::erase_if(all, [&](const Device& device) {
    return device.info().software && !device.info().is_cpu && !everywhere;
  });
  return all;
}

struct Text {
  Tokens tokens;
  std::vector<std::vector<double>> wanted;
};

// A text whose compressed keys are chosen alike in f32.
Text some_text(const TinyDeepSeek4& tiny, int count) {
  for (int skipped = count;; ++skipped) {  // texts of other lengths begin in another way
    Tokens tokens = some_tokens(skipped + count, tiny.vocabulary);
    tokens.erase(tokens.begin(), tokens.begin() + skipped);
    const Text text{tokens, tiny.logits(tokens)};
    constexpr double kEnough = 1e-5;
    if (tiny.least_gap() > kEnough) return text;
  }
}

void expect_logits(const Text& text, size_t first, const std::vector<float>& found,
                   const std::string& what, double bound = 2e-4) {
  const size_t width = text.wanted[0].size();
  ASSERT_EQ(found.size() % width, 0U) << what;
  for (size_t i = 0; i < found.size() / width; ++i)
    expect_close(std::span(found).subspan(i * width, width), text.wanted[first + i], bound,
                 what + " token " + std::to_string(first + i));
}

void check(const DeepSeek4Kind& kind, int length, int64_t block, bool everywhere = false) {
  TinyDeepSeek4 tiny(kind);
  const GgufFile file = tiny.open();
  std::vector<Text> texts;
  for (const int count : {length, 9, length / 2}) texts.push_back(some_text(tiny, count));
  const auto part = [&](int32_t slot, size_t first, size_t count) {
    const Tokens& tokens = texts[static_cast<size_t>(slot)].tokens;
    return SequencePart{slot, static_cast<int32_t>(first), std::span(tokens).subspan(first, count),
                        Wanted::all};
  };
  for (const Device& device : devices(everywhere)) {
    Model model = Model::load(
        file,
        {.placement = place_on(file, device, 300, DType::f32), .slots = 3, .cache_block = block});
    const auto rows_of = [&](std::span<const SequencePart> parts) {
      return model.forward(parts).to_vector<float>();
    };
    for (const size_t chunk : {size_t{300}, size_t{37}}) {
      for (size_t first = 0; first < texts[0].tokens.size(); first += chunk) {
        const SequencePart one = part(0, first, std::min(chunk, texts[0].tokens.size() - first));
        expect_logits(texts[0], first, rows_of(std::span(&one, 1)),
                      device.id() + " in chunks of " + std::to_string(chunk));
      }
    }
    // Two texts at once, of which one is in a chunk that others are before, then all by tokens.
    const size_t begin = texts[2].tokens.size() - 5;
    const SequencePart before = part(2, 0, begin - 20),
                       both[] = {part(1, 0, 4), part(2, begin - 20, 20)};
    rows_of(std::span(&before, 1));
    const std::vector<float> rows = rows_of(both);
    const auto middle = rows.begin() + 4 * tiny.vocabulary;
    expect_logits(texts[1], 0, {rows.begin(), middle}, device.id() + " the first of two");
    expect_logits(texts[2], begin - 20, {middle, rows.end()}, device.id() + " the second of two");
    for (size_t i = 0; i < 5; ++i) {
      const size_t last = texts[0].tokens.size() - 5 + i;
      const SequencePart each[] = {part(0, last, 1), part(1, 4 + i, 1), part(2, begin + i, 1)};
      const std::vector<float> all = rows_of(each);
      const size_t places[] = {last, 4 + i, begin + i};
      for (size_t t = 0; t < 3; ++t) {
        const auto first = all.begin() + static_cast<ptrdiff_t>(t) * tiny.vocabulary;
        expect_logits(texts[t], places[t], {first, first + tiny.vocabulary},
                      device.id() + " token by token, text " + std::to_string(t));
      }
    }
  }
}

TEST(DeepSeek4, LayersOfAllKindsOnEveryDevice) { check({}, 270, 0, true); }
TEST(DeepSeek4, SmallBlocks) { check({}, 150, 4); }
TEST(DeepSeek4, WindowsLongerThanTheText) { check({.window = 1000}, 140, 0); }
TEST(DeepSeek4, OneStreamAndNoScaling) {
  check({.ratios = {4, 0}, .hash_layers = 0, .streams = 1, .scaling = 1}, 60, 0);
}
TEST(DeepSeek4, ManyChosenKeysAndALayerThatProposes) {
  check({.ratios = {128, 4}, .hash_layers = 2, .chosen = 1000, .proposing = 1}, 140, 0);
}

// In a context that is shorter than a compressed key's positions there is none.
TEST(DeepSeek4, AShortContext) {
  TinyDeepSeek4 tiny({.ratios = {128, 0}});
  const GgufFile file = tiny.open();
  const Text text = some_text(tiny, 20);
  for (const Device& device : devices(false)) {
    Model model = Model::load(file, {.placement = place_on(file, device, 20, DType::f32)});
    const SequencePart all{0, 0, text.tokens, Wanted::all};
    expect_logits(text, 0, model.forward(std::span(&all, 1)).to_vector<float>(), device.id());
  }
}

// Every token by itself, so that each compressed key is made from candidates in the cache.
TEST(DeepSeek4, EachTokenAloneWithCachesOfFewerBits) {
  TinyDeepSeek4 tiny({.ratios = {4, 128}, .chosen = 100});
  const GgufFile file = tiny.open();
  const Text text = some_text(tiny, 140);
  const std::pair<ElementType, double> bounds[] = {
      {DType::f32, 2e-4}, {DType::f16, 1e-2}, {BlockType::q8_0, 0.2}};
  for (const Device& device : devices(false))
    for (const auto& [type, bound] : bounds) {
      Model model = Model::load(file, {.placement = place_on(file, device, 200, type)});
      for (size_t i = 0; i < text.tokens.size(); ++i) {
        const SequencePart one{0, static_cast<int32_t>(i), std::span(text.tokens).subspan(i, 1)};
        expect_logits(text, i, model.forward(std::span(&one, 1)).to_vector<float>(),
                      device.id() + " " + type.name(), bound);
      }
    }
}

// The tokens that the definition writes after a text, as long as the likeliest is clearly so.
Tokens written_after(const TinyDeepSeek4& tiny, Tokens text, size_t most) {
  const size_t before = text.size();
  while (text.size() < before + most) {
    const std::vector<double> last = tiny.logits(text).back();
    const auto best = std::ranges::max_element(last);
    double second = -1e300;
    for (auto each = last.begin(); each != last.end(); ++each)
      if (each != best) second = std::max(second, *each);
    constexpr double kClear = 1e-3;
    if (tiny.least_gap() < 1e-5 || *best - second < kClear) break;
    text.push_back(static_cast<int32_t>(best - last.begin()));
  }
  return {text.begin() + static_cast<ptrdiff_t>(before), text.end()};
}

// Generations decode on the device, and the second and third begin with blocks of the first.
TEST(DeepSeek4, GenerationsThatShareAPrefix) {
  TinyDeepSeek4 tiny({.ratios = {4, 128, 0}, .chosen = 5});
  tiny.file.set("tokenizer.ggml.model", "no_vocab");
  const GgufFile file = tiny.open();
  const Tokenizer tokenizer = Tokenizer::from(file);
  Tokens first = some_text(tiny, 150).tokens, second = first, third = first;
  second.resize(141);
  for (size_t i = 130; i < second.size(); ++i) second[i] = (second[i] + 7) % tiny.vocabulary;
  third.push_back(3);
  const Tokens prompts[] = {first, second, third, first};
  for (const Device& device : devices(false)) {
    Model model = Model::load(
        file,
        {.placement = place_on(file, device, 300, DType::f32), .slots = 2, .cache_block = 16});
    Scheduler scheduler(model, tokenizer);
    size_t compared = 0;
    for (const Tokens& prompt : prompts) {
      const Tokens wanted = written_after(tiny, prompt, 14);
      const int64_t id = scheduler.add({prompt, test::greedy(14)});
      scheduler.run();
      const Generation generation = scheduler.take(id);
      EXPECT_EQ(generation.statistics.reused_tokens > 0, &prompt != prompts) << device.id();
      Tokens found = generation.tokens;
      ASSERT_GE(found.size(), wanted.size()) << device.id();
      found.resize(wanted.size());
      EXPECT_EQ(found, wanted) << device.id() << " after " << prompt.size();
      compared += wanted.size();
    }
    EXPECT_GT(compared, 14U);
  }
}

TEST(DeepSeek4, OtherRatiosAreErrors) {
  TinyDeepSeek4 tiny({.ratios = {8}});
  const GgufFile file = tiny.open();
  EXPECT_THROW(Model::load(file, {.placement = place_on(file, Device::cpu(), 20, DType::f32)}),
               Error);
}

}  // namespace
}  // namespace prism::llm
