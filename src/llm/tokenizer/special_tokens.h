// Finds special tokens in a text, and well-known ones in a vocabulary.
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

// Looks up control, unknown and user-defined tokens by their text.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);
  // The first match at or after `at`; the longest one if several start there. with_control:
  // includes control and unknown tokens, not only user-defined ones.
  std::optional<SpecialMatch> find(std::string_view text, size_t at, bool with_control) const;

 private:
  struct Set {
    TextTable texts{{}};
    std::vector<int32_t> ids;
    std::array<std::vector<uint32_t>, 256> lengths;  // by first byte, longest first
    std::bitset<65536> starts;                       // the byte pairs that tokens start with
  };
  static Set make_set(const Vocabulary& vocabulary, bool with_control);
  Set all_, user_defined_;
};

// Tokens that end a turn, and those that end generation, recognised by their usual text. A text
// that may be ordinary counts only if the file marks the token as special.
std::vector<int32_t> find_turn_ends(const Vocabulary& vocabulary);
std::vector<int32_t> find_generation_ends(const Vocabulary& vocabulary);

}  // namespace prism::llm
