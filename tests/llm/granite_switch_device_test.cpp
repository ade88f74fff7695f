// Compares Granite Switch with its published definition in float64 on every device: texts that
// switch no adapter on, one, and several, whole, in chunks and together.
#include <algorithm>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "prism/error.h"
#include "support/devices/devices.h"
#include "support/models/tiny_granite_switch.h"
#include "support/models/tiny_model.h"

namespace prism::llm {
namespace {

using test::expect_close;
using test::TinyGraniteSwitch;
using Tokens = std::vector<int32_t>;

// Tokens that switch nothing, but for these at their places.
Tokens text_with(const std::vector<std::pair<size_t, int32_t>>& switches, int count, int offset) {
  Tokens tokens = test::some_tokens(count + offset, TinyGraniteSwitch::kSwitches[0]);
  tokens.erase(tokens.begin(), tokens.begin() + offset);
  for (const auto& [place, token] : switches) tokens[place] = token;
  return tokens;
}

TEST(GraniteSwitch, AdaptersFollowTheTokensOfATextOnEveryDevice) {
  constexpr const int32_t* kSwitches = TinyGraniteSwitch::kSwitches;
  TinyGraniteSwitch tiny;
  const GgufFile file = tiny.open();
  const Tokens texts[] = {
      text_with({{11, kSwitches[1]}}, 30, 0), text_with({}, 12, 30),
      text_with({{0, kSwitches[2]}, {19, kSwitches[0]}, {20, kSwitches[0]}}, 26,
                42),  // the mean: 5/3
  };
  for (const Device& device : test::every_device()) {
    Model model = Model::load(
        file, {.placement = place_on(file, device, 40, DType::f32), .slots = 3, .cache_block = 8});
    const auto check = [&](std::span<const SequencePart> parts) {
      const std::vector<float> found = model.forward(parts).to_vector<float>();
      size_t at = 0;
      for (const SequencePart& part : parts) {
        const auto wanted = tiny.logits(texts[part.slot]);
        for (size_t i = 0; i < part.tokens.size(); ++i) {
          const size_t place = static_cast<size_t>(part.first_position) + i;
          expect_close(std::span(found).subspan(at, wanted[place].size()), wanted[place], 2e-4,
                       device.id() + " text " + std::to_string(part.slot) + " token " +
                           std::to_string(place));
          at += wanted[place].size();
        }
      }
    };
    const auto part = [&](int32_t slot, size_t first, size_t count) {
      return SequencePart{slot, static_cast<int32_t>(first),
                          std::span(texts[slot]).subspan(first, count), Wanted::all};
    };
    const SequencePart whole = part(0, 0, 30);
    check(std::span(&whole, 1));
    const SequencePart first[] = {part(0, 0, 10), part(1, 0, 5), part(2, 0, 18)};
    check(first);
    for (size_t i = 0; i < 5; ++i) {
      const SequencePart next[] = {part(0, 10 + i, 1), part(1, 5 + i, 1), part(2, 18 + i, 1)};
      check(next);
    }
  }
}

TEST(GraniteSwitch, TokensBeyondTheVocabularyAreErrors) {
  TinyGraniteSwitch tiny;
  tiny.set("adapters.token_ids_substitute", std::vector<int32_t>{1, 2, 1000});
  const GgufFile file = tiny.open();
  EXPECT_THROW(Model::load(file, {.placement = place_on(file, Device::cpu(), 40, DType::f32)}),
               Error);
}

}  // namespace
}  // namespace prism::llm
