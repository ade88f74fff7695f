// Looks up character properties in the generated Unicode tables.
#include "llm/tokenizer/unicode.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace prism::llm {
namespace {

struct CodeRange {
  uint32_t first, last;
};
struct LowerRun {
  uint32_t first, last, step;
  int32_t distance;
};
struct Base {
  uint32_t code, first, second, third;  // 0: none
};

#include "llm/tokenizer/unicode_tables.inc"

// The last entry of a sorted table that starts at or before the code; null if there is none.
template <class Entry>
const Entry* last_from(std::span<const Entry> table, uint32_t code, uint32_t Entry::*first) {
  const auto after = std::ranges::upper_bound(table, code, {}, first);
  return after == table.begin() ? nullptr : &*std::prev(after);
}

bool is_in(std::span<const CodeRange> table, uint32_t code) {
  const CodeRange* range = last_from(table, code, &CodeRange::first);
  return range && code <= range->last;
}

}  // namespace

bool is_punctuation(uint32_t code) { return is_in(kPunctuation, code); }
bool is_non_spacing_mark(uint32_t code) { return is_in(kNonSpacingMarks, code); }
bool is_control(uint32_t code) { return is_in(kControls, code); }

bool is_white_space(uint32_t code) {
  return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_chinese(uint32_t code) {
  static constexpr CodeRange kBlocks[] = {{0x3400, 0x4dbf},
                                          {0x4e00, 0x9fff},
                                          {0xf900, 0xfaff},
                                          {0x20000, 0x2a6df},
                                          {0x2a700, 0x2b73f},
                                          {0x2b740, 0x2b81f},
                                          // The tokenizers used in training start here, not at
                                          // the block start 2b820.
                                          {0x2b920, 0x2ceaf},
                                          {0x2f800, 0x2fa1f}};
  return is_in(kBlocks, code);
}

uint32_t lower_case(uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 0x20 : code;
  const LowerRun* run = last_from(std::span<const LowerRun>(kLowerRuns), code, &LowerRun::first);
  if (!run || code > run->last || (code - run->first) % run->step != 0) return code;
  return code + static_cast<uint32_t>(run->distance);
}

uint32_t upper_case(uint32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z' ? code - 0x20 : code;
  for (const LowerRun& run : kLowerRuns) {
    const uint32_t upper = code - static_cast<uint32_t>(run.distance);
    if (upper >= run.first && upper <= run.last && (upper - run.first) % run.step == 0)
      return upper;
  }
  return code;
}

void append_without_accents(uint32_t code, std::vector<uint32_t>* to) {
  constexpr uint32_t kHangul = 0xac00, kSyllables = 11172, kVowels = 21, kTails = 28;
  if (code < 0x80) {
    to->push_back(code);
  } else if (code >= kHangul && code < kHangul + kSyllables) {
    const uint32_t syllable = code - kHangul;
    to->push_back(0x1100 + syllable / (kVowels * kTails));
    to->push_back(0x1161 + syllable / kTails % kVowels);
    if (syllable % kTails > 0) to->push_back(0x11a7 + syllable % kTails);
  } else if (const Base* base = last_from(std::span<const Base>(kBases), code, &Base::code);
             base && base->code == code) {
    for (const uint32_t part : {base->first, base->second, base->third})
      if (part) to->push_back(part);
  } else if (!is_non_spacing_mark(code)) {
    to->push_back(code);
  }
}

}  // namespace prism::llm
