// Finds, splits and folds words.
#include "search/files/words.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <unordered_set>

#include "base/utf8.h"
#include "llm/tokenizer/unicode.h"

namespace prism::search {
namespace {

constexpr size_t kMaximumWord = 64;  // bytes; longer ones are data

enum class Letter : uint8_t { none, lower, upper, digit, joiner, whole };

struct Character {
  Letter letter = Letter::none;
  uint32_t code = 0;
  size_t begin = 0, end = 0;
};

Letter letter_of(uint32_t code) {
  if (code < 0x80) {
    if (code >= 'a' && code <= 'z') return Letter::lower;
    if (code >= 'A' && code <= 'Z') return Letter::upper;
    if (code >= '0' && code <= '9') return Letter::digit;
    return code == '_' ? Letter::joiner : Letter::none;
  }
  if (llm::is_chinese(code)) return Letter::whole;
  if (llm::is_non_spacing_mark(code)) return Letter::lower;
  if (code == 0xfffd || code < 0xaa || llm::is_punctuation(code) || llm::is_control(code) ||
      llm::is_white_space(code) || (code >= 0x2000 && code < 0x2c00) ||
      (code >= 0x1f000 && code < 0x20000))  // symbols and pictures
    return Letter::none;
  return llm::lower_case(code) != code ? Letter::upper : Letter::lower;
}

std::string folded(std::span<const Character> word) {
  std::vector<uint32_t> codes;
  for (const Character& each : word) {
    if (each.letter == Letter::joiner) continue;
    if (each.code < 0x80)
      codes.push_back(llm::lower_case(each.code));
    else
      llm::append_without_accents(llm::lower_case(each.code), &codes);
  }
  std::string text;
  for (const uint32_t code : codes) append_utf8(code, &text);
  return stem(std::move(text));
}

// Whether a part of an identifier begins at word[i]: aB, Ab after capitals, a1, 1a, _a.
bool begins_part(std::span<const Character> word, size_t i) {
  const Letter here = word[i].letter, before = word[i - 1].letter;
  if (here == Letter::joiner || before == Letter::joiner) return true;
  if ((here == Letter::digit) != (before == Letter::digit)) return true;
  if (here != Letter::upper) return false;
  return before == Letter::lower || (i + 1 < word.size() && word[i + 1].letter == Letter::lower);
}

template <class Visit>
void visit_word(std::span<const Character> word, const Visit& visit) {
  const auto give = [&](std::span<const Character> part) {
    while (!part.empty() && part.front().letter == Letter::joiner) part = part.subspan(1);
    while (!part.empty() && part.back().letter == Letter::joiner)
      part = part.first(part.size() - 1);
    if (!part.empty() && part.back().end - part.front().begin <= kMaximumWord)
      visit(folded(part), part.front().begin, part.back().end);
  };
  give(word);
  size_t begin = 0;
  for (size_t i = 1; i <= word.size(); ++i) {
    if (i < word.size() && !begins_part(word, i)) continue;
    if (begin > 0 || i < word.size()) give(word.subspan(begin, i - begin));
    begin = i;
  }
}

// Words of questions rather than of answers.
const std::unordered_set<std::string>& common_words() {
  static const std::unordered_set<std::string> all = [] {
    std::unordered_set<std::string> stems;
    std::istringstream words(
        "a about all am an and any are as at be been but by can could did do does each for from "
        "had "
        "has have how i if in into is it its me my not of on or our should so than that the their "
        "them then there this these those to was we what when where which who why with would you "
        "your");
    for (std::string word; words >> word;) stems.insert(stem(word));
    return stems;
  }();
  return all;
}

}  // namespace

std::string stem(std::string word) {
  const auto drop = [&](std::string_view ending, size_t least) {
    if (word.size() < least + ending.size() || !word.ends_with(ending)) return false;
    word.resize(word.size() - ending.size());
    return true;
  };
  if (word.size() < 4) return word;
  if (drop("ies", 2)) {
    word += 'y';
  } else if (!word.ends_with("ss") && !word.ends_with("us")) {
    drop("s", 2);
  }
  const bool is_shortened = drop("ing", 4) || drop("ed", 4);
  if (is_shortened) {  // "running": a doubled consonant
    const size_t size = word.size();
    if (word[size - 1] == word[size - 2] &&
        std::string_view("lsz").find(word[size - 1]) == std::string_view::npos)
      word.resize(size - 1);
  }
  drop("e", 3);
  return word;
}

void each_word(std::string_view text,
               const std::function<void(const std::string&, size_t, size_t)>& visit) {
  std::vector<Character> word;
  const auto flush = [&] {
    if (!word.empty()) visit_word(word, visit);
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    const Character here{letter_of(character.code), character.code, at, at + character.bytes};
    at += character.bytes;
    if (here.letter == Letter::none || here.letter == Letter::whole) flush();
    if (here.letter == Letter::none) continue;
    word.push_back(here);
    if (here.letter == Letter::whole) flush();
  }
  flush();
}

std::vector<std::string> question_words(std::string_view question) {
  std::vector<std::string> words;
  each_word(question, [&](const std::string& word, size_t, size_t) {
    if (!word.empty() && std::ranges::find(words, word) == words.end()) words.push_back(word);
  });
  std::vector<std::string> rare;
  std::ranges::copy_if(words, std::back_inserter(rare),
                       [](const std::string& word) { return !common_words().contains(word); });
  return rare.empty() ? words : rare;
}

}  // namespace prism::search
