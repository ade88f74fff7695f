// Makes the words of the codebooks, on first use.
#include "cpu/products/codebook_words.h"

#include "base/types/codebooks.h"

namespace prism::cpu {
namespace {

CodebookWords words_of(const Codebook& book) {
  CodebookWords words;
  const uint32_t elements = book.elements(), width = elements == 8 ? 2 : 4;
  for (size_t i = 0; i < book.values.size(); ++i) {
    uint32_t word = 0;
    for (uint32_t n = 0; n < elements; ++n) {
      const auto value = static_cast<uint8_t>(book.values[i] >> (8 * n));
      const uint32_t digit = book.digit_of[value];
      word |= digit << (8 * (n % 2) + width * (n / 2));
      words.values[digit] = static_cast<int8_t>(value);
    }
    words.entries[i] = static_cast<uint16_t>(word);
  }
  return words;
}

}  // namespace

const CodebookWords* codebook_words(BlockType type) {
  static const struct {
    CodebookWords iq1 = words_of(codebooks().iq1), iq2_xxs = words_of(codebooks().iq2_xxs),
                  iq2_xs = words_of(codebooks().iq2_xs), iq2_s = words_of(codebooks().iq2_s),
                  iq3_xxs = words_of(codebooks().iq3_xxs), iq3_s = words_of(codebooks().iq3_s);
  } words;
  switch (type) {
    case BlockType::iq1_s:
    case BlockType::iq1_m:
      return &words.iq1;
    case BlockType::iq2_xxs:
      return &words.iq2_xxs;
    case BlockType::iq2_xs:
      return &words.iq2_xs;
    case BlockType::iq2_s:
      return &words.iq2_s;
    case BlockType::iq3_xxs:
      return &words.iq3_xxs;
    case BlockType::iq3_s:
      return &words.iq3_s;
    default:
      return nullptr;
  }
}

}  // namespace prism::cpu
