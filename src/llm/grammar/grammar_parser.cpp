// Parses GBNF text into rules: names, literals, classes, groups, alternatives and repetitions.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "llm/grammar/grammar_rules.h"
#include "llm/tokenizer/partial_character.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

using Kind = GrammarSymbol::Kind;
constexpr size_t kMaximumText = size_t{4} << 20;
constexpr int kMaximumDepth = 200;  // of groups: each is a level of recursion

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  void add_part(const std::string& name, const GrammarRules& part) {
    const auto first_rule = static_cast<uint32_t>(rules_.rules.size()),
               first_symbol = static_cast<uint32_t>(rules_.symbols.size()),
               first_set = static_cast<uint32_t>(rules_.sets.size());
    for (GrammarSymbol symbol : part.symbols) {
      if (symbol.kind != Kind::end)
        symbol.index += symbol.kind == Kind::characters ? first_set : first_rule;
      rules_.symbols.push_back(symbol);
    }
    for (const GrammarRule& rule : part.rules) {
      const uint32_t added = add_rule(rule.name);
      for (const uint32_t start : rule.alternatives)
        rules_.rules[added].alternatives.push_back(first_symbol + start);
    }
    rules_.sets.insert(rules_.sets.end(), part.sets.begin(), part.sets.end());
    names_[name] = first_rule + part.root;
  }

  GrammarRules parse(std::string_view root) {
    if (text_.size() > kMaximumText)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("grammar: the text has {} bytes, the limit is {}", text_.size(),
                              kMaximumText));
    skip_space(true);
    while (at_ < text_.size()) parse_rule();
    for (uint32_t i = 0; i < rules_.rules.size(); ++i)
      if (rules_.rules[i].alternatives.empty())
        fail_at(first_use_[i],
                fmt::format("the rule \"{}\" is used but not defined", rules_.rules[i].name));
    const auto found = names_.find(std::string(root));
    if (found == names_.end())
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("grammar: there is no rule \"{0}\" to start with; add {0} ::= ...", root));
    rules_.root = found->second;
    reject_left_recursion(rules_);
    return std::move(rules_);
  }

 private:
  using Sequence = std::vector<GrammarSymbol>;

  [[noreturn]] void fail(const std::string& what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(size_t at, const std::string& what) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::ranges::count(before, '\n');
    const size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
    const auto column = 1 + std::ranges::count_if(before.substr(start), [](char c) {
                          return (static_cast<uint8_t>(c) & 0xC0) != 0x80;
                        });
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("grammar, line {} column {}: {}", line, column, what));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string found() const {
    if (at_ >= text_.size()) return "the end of the grammar";
    if (peek() == '\n') return "the end of the line";
    return fmt::format("\"{}\"", text_[at_]);
  }

  void skip_space(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string parse_name() {
    const size_t start = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    if (at_ == start) fail(fmt::format("expected the name of a rule, found {}", found()));
    return std::string(text_.substr(start, at_ - start));
  }

  uint32_t rule_named(const std::string& name, size_t where) {
    const auto [entry, fresh] = names_.try_emplace(name, static_cast<uint32_t>(0));
    if (fresh) {
      entry->second = add_rule(name);
      first_use_[entry->second] = where;
    }
    return entry->second;
  }
  uint32_t add_rule(const std::string& name) {
    rules_.rules.push_back({name, {}});
    first_use_.push_back(0);
    return static_cast<uint32_t>(rules_.rules.size() - 1);
  }
  void add_alternative(uint32_t rule, const Sequence& sequence) {
    rules_.rules[rule].alternatives.push_back(static_cast<uint32_t>(rules_.symbols.size()));
    rules_.symbols.insert(rules_.symbols.end(), sequence.begin(), sequence.end());
    rules_.symbols.push_back({});
  }
  uint32_t set_index(CodeSet set) {
    rules_.sets.push_back(std::move(set));
    return static_cast<uint32_t>(rules_.sets.size() - 1);
  }

  void parse_rule() {
    const size_t start = at_;
    current_ = parse_name();
    skip_space(false);
    if (!take("::=")) fail(fmt::format("expected ::= after \"{}\", found {}", current_, found()));
    const uint32_t rule = rule_named(current_, start);
    if (!rules_.rules[rule].alternatives.empty())
      fail_at(start, fmt::format("the rule \"{}\" is defined twice", current_));
    parse_alternatives(rule, 0);
    if (at_ < text_.size() && peek() != '\n')
      fail(fmt::format("expected the end of the rule \"{}\", found {}", current_, found()));
    skip_space(true);
  }

  // Does not consume the end of the line after the last alternative.
  void parse_alternatives(uint32_t rule, int depth) {
    for (;;) {
      skip_space(true);
      add_alternative(rule, parse_sequence(depth));
      // A line may start with the bar of the next alternative.
      const size_t end = at_;
      skip_space(true);
      if (take("|")) continue;
      if (depth == 0) at_ = end;
      return;
    }
  }

  Sequence parse_sequence(int depth) {
    Sequence sequence;
    size_t last = 0;  // start of the item that a repetition applies to
    for (;;) {
      skip_space(depth > 0);
      const char c = peek();
      if (c == '"') {
        last = sequence.size();
        parse_literal(sequence);
      } else if (c == '[') {
        last = sequence.size();
        sequence.push_back({Kind::characters, set_index(parse_class())});
      } else if (c == '.') {
        ++at_;
        last = sequence.size();
        sequence.push_back({Kind::characters, set_index(make_code_set({}, true))});
      } else if (c == '(') {
        if (depth == kMaximumDepth)
          fail(fmt::format("groups are nested more than {} deep", kMaximumDepth));
        ++at_;
        const uint32_t group = add_rule(current_ + "-group");
        parse_alternatives(group, depth + 1);
        if (!take(")")) fail(fmt::format("expected ) to end a group, found {}", found()));
        last = sequence.size();
        sequence.push_back({Kind::rule, group});
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        parse_repetition(sequence, last);
        last = sequence.size();  // a repetition cannot be repeated
      } else if (is_name_character(c)) {
        const size_t where = at_;
        const std::string name = parse_name();
        last = sequence.size();
        sequence.push_back({Kind::rule, rule_named(name, where)});
      } else {
        return sequence;
      }
    }
  }

  void parse_repetition(Sequence& sequence, size_t last) {
    if (last == sequence.size()) fail(fmt::format("{} has nothing before it to repeat", found()));
    uint32_t minimum = 0, maximum = kNoMaximum;
    const char c = peek();
    ++at_;
    if (c == '+') minimum = 1;
    if (c == '?') maximum = 1;
    if (c == '{') {
      skip_space(false);
      const bool has_minimum = peek() != ',';
      if (has_minimum) minimum = parse_count();
      skip_space(false);
      if (take(",")) {
        skip_space(false);
        if (peek() != '}') maximum = parse_count();
        skip_space(false);
      } else {
        maximum = minimum;
      }
      if (!take("}")) fail(fmt::format("expected }} to end a repetition, found {}", found()));
      if (minimum > maximum)
        fail(fmt::format("a repetition has a minimum of {} and a maximum of {}", minimum, maximum));
    }
    uint32_t item;
    if (sequence.size() - last == 1 && sequence[last].kind == Kind::rule) {
      item = sequence[last].index;
    } else {
      item = add_rule(current_ + "-item");
      add_alternative(item,
                      Sequence(sequence.begin() + static_cast<ptrdiff_t>(last), sequence.end()));
    }
    sequence.resize(last);
    sequence.push_back({Kind::repeat, item, minimum, maximum});
  }

  uint32_t parse_count() {
    uint64_t count = 0;
    const size_t start = at_;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      count = count * 10 + static_cast<uint64_t>(peek() - '0');
      if (count > 1000000000) fail("a repetition exceeds 1000000000 times");
    }
    if (at_ == start) fail(fmt::format("expected a number of repetitions, found {}", found()));
    return static_cast<uint32_t>(count);
  }

  // Each character of a literal is a symbol; a repetition applies to the whole literal.
  void parse_literal(Sequence& sequence) {
    const size_t start = at_++;
    while (peek() != '"') {
      if (at_ >= text_.size() || peek() == '\n') fail_at(start, "a quoted text is not closed");
      const uint32_t code = parse_character();
      sequence.push_back({Kind::characters, set_index(make_code_set({{code, code}}, false))});
    }
    ++at_;
  }

  CodeSet parse_class() {
    const size_t start = at_++;
    const bool inverted = take("^");
    CodeSet ranges;
    while (peek() != ']') {
      if (at_ >= text_.size() || peek() == '\n') fail_at(start, "a character class is not closed");
      const size_t where = at_;
      const uint32_t first = parse_character();
      uint32_t last = first;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        if (peek() == '\n') fail_at(start, "a character class is not closed");
        last = parse_character();
        if (last < first) fail_at(where, "a character range is reversed");
      }
      ranges.push_back({first, last});
    }
    ++at_;
    CodeSet set = make_code_set(std::move(ranges), inverted);
    return set;
  }

  uint32_t parse_character() {
    if (take("\\")) return parse_escape();
    PartialCharacter partial;
    const size_t start = at_;
    do {
      if (at_ >= text_.size() || !partial.put(static_cast<uint8_t>(text_[at_])))
        fail_at(start, "a character is not valid UTF-8");
      ++at_;
    } while (partial.missing > 0);
    return partial.first;
  }

  uint32_t parse_escape() {
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return parse_hexadecimal(2);
      case 'u':
        return parse_hexadecimal(4);
      case 'U':
        return parse_hexadecimal(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '^':
      case '-':
        return static_cast<uint32_t>(c);
      default:
        --at_;
        fail(fmt::format("expected n r t x u U \\ \" [ ] ^ or - after a backslash, found {}",
                         found()));
    }
  }

  uint32_t parse_hexadecimal(int digits) {
    uint32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail(fmt::format("expected {} hexadecimal digits, found {}", digits, found()));
      code = code << 4 | static_cast<uint32_t>(digit);
    }
    if (code > kLastCodePoint) fail(fmt::format("U+{:X} is not a Unicode character", code));
    return code;
  }

  std::string_view text_;
  size_t at_ = 0;
  GrammarRules rules_;
  std::map<std::string, uint32_t> names_;
  std::vector<size_t> first_use_;  // by rule
  std::string current_;            // the rule being parsed
};

}  // namespace

GrammarRules parse_grammar(std::string_view text, std::string_view root,
                           const std::map<std::string, const GrammarRules*>& parts) {
  Parser parser(text);
  for (const auto& [name, rules] : parts) parser.add_part(name, *rules);
  return parser.parse(root);
}

}  // namespace prism::llm
