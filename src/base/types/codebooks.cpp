// Makes the codebooks from bitmaps, on first use.
#include "base/types/codebooks.h"

#include <algorithm>
#include <array>
#include <span>

namespace prism {

namespace {

#include "base/types/codebook_bits.inc"

// The values by digit.
constexpr std::array<int8_t, 3> kIq1 = {-7, 1, 9};
constexpr std::array<int8_t, 3> kIq2 = {8, 25, 43};
constexpr std::array<int8_t, 8> kIq3Xxs = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<int8_t, 8> kIq3S = {1, 3, 5, 7, 9, 11, 13, 15};

Codebook book_of(std::span<const uint64_t> bits, std::span<const int8_t> digits) {
  Codebook book;
  book.base = static_cast<uint32_t>(digits.size());
  for (uint32_t i = 0; i < book.base; ++i)
    book.digit_of[static_cast<uint8_t>(digits[i])] = static_cast<uint8_t>(i);
  const uint32_t elements = book.elements();
  for (uint32_t number = 0; number < 64 * bits.size(); ++number) {
    if ((bits[number / 64] >> (number % 64) & 1) == 0) continue;
    uint64_t values = 0;
    for (uint32_t i = 0, rest = number; i < elements; ++i, rest /= book.base)
      values |= uint64_t{static_cast<uint8_t>(digits[rest % book.base])} << (8 * i);
    book.values.push_back(values);
    book.numbers.push_back(static_cast<uint16_t>(number));
  }
  return book;
}

}  // namespace

uint32_t Codebook::index_of(const uint8_t* bytes) const {
  uint32_t number = 0;
  for (uint32_t i = elements(); i-- > 0;) number = number * base + digit_of[bytes[i]];
  return static_cast<uint32_t>(std::ranges::lower_bound(numbers, number) - numbers.begin());
}

const Codebooks& codebooks() {
  static const Codebooks books = {book_of(kIQ1, kIq1),        book_of(kIQ2_XXS, kIq2),
                                  book_of(kIQ2_XS, kIq2),     book_of(kIQ2_S, kIq2),
                                  book_of(kIQ3_XXS, kIq3Xxs), book_of(kIQ3_S, kIq3S)};
  return books;
}

}  // namespace prism
