// Finding special tokens in a text, and the names by which known ones go.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <string_view>
#include <vector>

#include "llm/tokenizer/text_encoder.h"

namespace prism::llm {

struct SpecialMatch {
  size_t start = 0, bytes = 0;
  int32_t id = -1;
};

// Control, unknown and user-defined tokens by their texts.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);
  // The first one at or after `at`, of those that start there the longest.
  // with_control: control and unknown tokens as well as user-defined ones.
  std::optional<SpecialMatch> find(std::string_view text, size_t at, bool with_control) const;

 private:
  struct Set {
    TextTable texts{{}};
    std::vector<int32_t> ids;
    std::array<std::vector<uint32_t>, 256> lengths;  // by first byte, the longest first
    std::bitset<65536> starts;                       // which two bytes begin one
  };
  static Set make_set(const Vocabulary& vocabulary, bool with_control);
  Set all_, user_defined_;
};

// Tokens that end a turn, and those that end generation, by their usual texts. A name that may well
// be ordinary text counts only where the file marks the token as special.
std::vector<int32_t> find_turn_ends(const Vocabulary& vocabulary);
std::vector<int32_t> find_generation_ends(const Vocabulary& vocabulary);

}  // namespace prism::llm
