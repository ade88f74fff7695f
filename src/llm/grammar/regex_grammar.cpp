// Parses regular expressions and translates them to grammar rules.
#include "llm/grammar/regex_grammar.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "llm/grammar/grammar_rules.h"
#include "llm/tokenizer/partial_character.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

constexpr int kMaximumDepth = 100;

// A set as it appears in a JSON string: escaped where JSON requires it, without control characters
// that have no short escape.
std::string json_characters(const CodeSet& set) {
  struct Escaped {
    uint32_t code;
    const char* text;
  };
  constexpr Escaped kEscaped[] = {{'"', "\"\\\\\\\"\""}, {'\\', "\"\\\\\\\\\""},
                                  {'\n', "\"\\\\n\""},   {'\t', "\"\\\\t\""},
                                  {'\r', "\"\\\\r\""},   {'\f', "\"\\\\f\""}};
  std::vector<std::string> ways;
  // Build the complement and invert it, so that only unescaped characters remain.
  CodeSet unwanted = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}};
  for (const CodeRange& each : make_code_set(set, true)) unwanted.push_back(each);
  std::string plain;
  for (const CodeRange& each : make_code_set(unwanted, true))
    plain += each.first == each.last ? fmt::format("\\U{:08X}", each.first)
                                     : fmt::format("\\U{:08X}-\\U{:08X}", each.first, each.last);
  if (!plain.empty()) ways.push_back("[" + plain + "]");
  for (const Escaped& each : kEscaped)
    if (contains(set, each.code)) ways.emplace_back(each.text);
  if (ways.empty()) return "";
  return ways.size() == 1 ? ways[0] : fmt::format("({})", fmt::join(ways, " | "));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::string parse(std::string_view any) {
    // An anchor belongs to its alternative: ^a|b$ is an a at the start or a b at the end.
    std::vector<std::string> ways;
    do {
      const bool from_start = take('^');
      to_end_ = false;
      const std::string body = parse_sequence(0);
      ways.push_back(fmt::format("{}{}{}", from_start ? "" : fmt::format("{}* ", any), body,
                                 to_end_ ? "" : fmt::format(" {}*", any)));
    } while (take('|'));
    if (at_ < text_.size())
      fail(fmt::format("found \"{}\" without an opening bracket", text_[at_]));
    return fmt::format("({})", fmt::join(ways, " | "));
  }

 private:
  [[noreturn]] void fail(const std::string& what,
                         ErrorCode code = ErrorCode::kInvalidArgument) const {
    throw Error(code, fmt::format("pattern \"{}\", character {}: {}", text_, at_ + 1, what));
  }
  [[noreturn]] void cannot(const char* what) const {
    fail(fmt::format("a grammar cannot express {}; write the pattern without it", what),
         ErrorCode::kNotSupported);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  std::string parse_alternatives(int depth) {
    if (depth > kMaximumDepth)
      fail(fmt::format("groups are nested more than {} deep", kMaximumDepth));
    std::vector<std::string> ways;
    do ways.push_back(parse_sequence(depth));
    while (take('|'));
    return fmt::format("{}", fmt::join(ways, " | "));
  }

  std::string parse_sequence(int depth) {
    std::string sequence = "\"\"";
    while (at_ < text_.size() && peek() != '|' && peek() != ')') {
      if (peek() == '$') {
        if (depth > 0 || (at_ + 1 != text_.size() && text_[at_ + 1] != '|'))
          cannot("an anchor inside the pattern");
        ++at_, to_end_ = true;
        break;
      }
      const std::string item = parse_item(depth);
      sequence += " " + item + parse_repetition();
    }
    return sequence;
  }

  std::string parse_item(int depth) {
    const char c = peek();
    if (c == '^') cannot("an anchor inside the pattern");
    if (c == '(') {
      ++at_;
      if (take('?')) {
        if (!take(':')) cannot("look-around or a named group");
      }
      const std::string body = parse_alternatives(depth + 1);
      if (!take(')')) fail("a group is not closed");
      return "(" + body + ")";
    }
    if (c == '*' || c == '+' || c == '?') fail(fmt::format("\"{}\" has nothing to repeat", c));
    if (c == '.') {
      ++at_;
      return json_characters(make_code_set({{'\n', '\n'}, {'\r', '\r'}}, true));
    }
    CodeSet set = c == '[' ? parse_class() : c == '\\' ? parse_escape(false) : one(character());
    const std::string text = json_characters(make_code_set(std::move(set), false));
    if (text.empty()) fail("no character of a JSON string matches here");
    return text;
  }

  static CodeSet one(uint32_t code) { return {{code, code}}; }

  std::string parse_repetition() {
    std::string result;
    const char c = peek();
    if (c == '*' || c == '+' || c == '?') {
      result = c;
      ++at_;
    } else if (c == '{') {
      const size_t end = text_.find('}', at_);
      if (end == text_.npos) fail("a repetition is not closed");
      result = std::string(text_.substr(at_, end + 1 - at_));
      const std::string_view inside = std::string_view(result).substr(1, result.size() - 2);
      if (inside.empty() || inside.front() == ',' ||
          inside.find_first_not_of("0123456789,") != inside.npos ||
          std::ranges::count(inside, ',') > 1)
        fail("a repetition is not of the form {m}, {m,} or {m,n}");
      at_ = end + 1;
    }
    if (!result.empty()) {
      if (take('+')) cannot("a possessive repetition");
      take('?');  // lazy: matches the same texts
    }
    return result;
  }

  CodeSet parse_class() {
    ++at_;
    const bool inverted = take('^');
    CodeSet set;
    while (peek() != ']') {
      if (at_ >= text_.size()) fail("a character class is not closed");
      CodeSet first = peek() == '\\' ? parse_escape(true) : one(character());
      const bool is_one = first.size() == 1 && first[0].first == first[0].last;
      if (is_one && peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        const CodeSet last = peek() == '\\' ? parse_escape(true) : one(character());
        if (last.size() != 1 || last[0].first < first[0].first)
          fail("a character range is reversed");
        first[0].last = last[0].first;
      }
      set.insert(set.end(), first.begin(), first.end());
    }
    ++at_;
    return make_code_set(std::move(set), inverted);
  }

  uint32_t character() {
    PartialCharacter partial;
    do {
      if (at_ >= text_.size() || !partial.put(static_cast<uint8_t>(text_[at_])))
        fail("a character is not valid UTF-8");
      ++at_;
    } while (partial.missing > 0);
    return partial.first;
  }

  CodeSet parse_escape(bool in_class) {
    ++at_;
    if (at_ >= text_.size()) fail("the pattern ends with a backslash");
    const char c = peek();
    const CodeSet digits = {{'0', '9'}}, spaces = {{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}},
                  words = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    if (!in_class && (c == 'b' || c == 'B')) cannot("a word boundary");
    if (c >= '1' && c <= '9') cannot("a back reference");
    if (c == 'p' || c == 'P') cannot("a Unicode property");
    if (c == 'u' || c == 'x') {
      ++at_;
      const size_t count = c == 'u' ? 4 : 2;
      uint32_t code = 0;
      for (size_t i = 0; i < count; ++i, ++at_) {
        const char h = peek();
        const bool letter = (h >= 'a' && h <= 'f') || (h >= 'A' && h <= 'F');
        if (!letter && (h < '0' || h > '9')) fail("expected hexadecimal digits");
        code = code << 4 | static_cast<uint32_t>(letter ? (h | 0x20) - 'a' + 10 : h - '0');
      }
      return one(code);
    }
    switch (c) {
      case 'd':
        return ++at_, digits;
      case 'D':
        return ++at_, make_code_set(digits, true);
      case 'w':
        return ++at_, words;
      case 'W':
        return ++at_, make_code_set(words, true);
      case 's':
        return ++at_, spaces;
      case 'S':
        return ++at_, make_code_set(spaces, true);
      case 'n':
        return ++at_, one('\n');
      case 't':
        return ++at_, one('\t');
      case 'r':
        return ++at_, one('\r');
      case 'f':
        return ++at_, one('\f');
      default:
        return one(character());
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  bool to_end_ = false;
};

}  // namespace

std::string regex_to_grammar(std::string_view expression, std::string_view any) {
  return Parser(expression).parse(any);
}

}  // namespace prism::llm
