// Splits templates into tokens and trims white space around tags.
#include "llm/template/template_lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace prism::llm::jinja {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  Lexer(Budget* budget, std::string_view text) : budget_(budget), text_(text) {
    budget_->charge(text.size());
    if (text_.ends_with('\n')) text_.remove_suffix(1);
    if (text_.ends_with('\r')) text_.remove_suffix(1);
  }

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const size_t open = find_open(at_);
      put_text(text_.substr(at_, open - at_), open);
      move_to(open);
      if (at_ == text_.size()) break;
      const char kind = text_[at_ + 1];
      if (kind == '#')
        skip_comment();
      else if (kind == '%' && !raw_block())
        tag(Token::Kind::open_tag, Token::Kind::close_tag, "%}");
      else if (kind == '{')
        tag(Token::Kind::open_value, Token::Kind::close_value, "}}");
    }
    put(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void wrong(const std::string& message) const {
    fail(fmt::format("line {}: {}", line_, message));
  }
  void put(Token::Kind kind, std::string text) {
    budget_->charge(sizeof(Token) + text.size());
    tokens_.push_back({kind, std::move(text), line_});
  }
  void move_to(size_t place) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                         text_.begin() + static_cast<ptrdiff_t>(place), '\n'));
    at_ = place;
  }
  // The position of the next {{, {% or {#, or the end.
  size_t find_open(size_t from) const {
    for (size_t at = text_.find('{', from); at != text_.npos; at = text_.find('{', at + 1)) {
      if (at + 1 < text_.size() && std::string_view("{%#").find(text_[at + 1]) != text_.npos)
        return at;
    }
    return text_.size();
  }
  // Adds plain text up to the tag that opens at `open`.
  void put_text(std::string_view text, size_t open) {
    if (trim_next_)
      text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
    trim_next_ = false;
    const char kind = open + 1 < text_.size() ? text_[open + 1] : 0;
    const char sign = open + 2 < text_.size() ? text_[open + 2] : 0;
    if (kind && sign == '-') {
      while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    } else if (kind && kind != '{' && sign != '+') {
      // Drop blanks between the start of the line and the tag.
      const size_t line = text.rfind('\n') + 1;
      const bool starts_line =
          line > 0 || open == text.size() || text_[open - text.size() - 1] == '\n';
      if (starts_line && std::ranges::all_of(text.substr(line), is_space))
        text = text.substr(0, line);
    }
    if (!text.empty()) put(Token::Kind::text, std::string(text));
  }
  // After a tag: - drops all white space, + none; otherwise blocks drop one newline.
  void after_tag(char sign, bool block) {
    if (sign == '-') {
      trim_next_ = true;
    } else if (block && sign != '+' && at_ < text_.size()) {
      if (text_.substr(at_).starts_with("\r\n")) move_to(at_ + 1);
      if (text_[at_] == '\n') move_to(at_ + 1);
    }
  }
  void skip_comment() {
    const size_t end = text_.find("#}", at_ + 2);
    if (end == text_.npos) wrong("a comment is not closed with #}");
    const char sign = end > at_ + 2 ? text_[end - 1] : 0;
    move_to(end + 2);
    after_tag(sign, true);
  }
  // {% raw %} ... {% endraw %}: text whose tags are not parsed.
  bool raw_block() {
    size_t at = at_;
    if (!tag_named(&at, "raw")) return false;
    const bool trim_start = text_[at - 3] == '-';
    size_t end = text_.find("{%", at);
    size_t after = end;
    while (end != text_.npos && !tag_named(&after, "endraw"))
      after = end = text_.find("{%", end + 2);
    if (end == text_.npos) wrong("{% raw %} is not closed with {% endraw %}");
    move_to(at);
    after_tag(trim_start ? '-' : text_[at - 3], true);
    put_text(text_.substr(at_, end - at_), end);
    move_to(after);
    after_tag(text_[after - 3], true);
    return true;
  }
  // Whether a tag with this one word is at *at; moves past it if so.
  bool tag_named(size_t* at, std::string_view name) const {
    size_t i = *at + 2;
    const auto blanks = [&] {
      while (i < text_.size() && is_space(text_[i])) ++i;
    };
    if (i < text_.size() && (text_[i] == '-' || text_[i] == '+')) ++i;
    blanks();
    if (!text_.substr(i).starts_with(name)) return false;
    i += name.size();
    blanks();
    if (i < text_.size() && (text_[i] == '-' || text_[i] == '+')) ++i;
    if (!text_.substr(i).starts_with("%}")) return false;
    *at = i + 2;
    return true;
  }

  void tag(Token::Kind open, Token::Kind close, std::string_view end) {
    put(open, "");
    at_ += 2;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    int brackets = 0;
    while (true) {
      while (at_ < text_.size() && is_space(text_[at_])) move_to(at_ + 1);
      if (at_ >= text_.size()) wrong(fmt::format("a tag is not closed with {}", end));
      const char sign = text_[at_];
      // Inside brackets, }} closes two of them.
      if (brackets == 0 || open == Token::Kind::open_tag) {
        const size_t shift = sign == '-' || sign == '+' ? 1 : 0;
        if (at_ + shift + 1 < text_.size() && text_[at_ + shift] == end[0] &&
            text_[at_ + shift + 1] == end[1]) {
          put(close, "");
          move_to(at_ + shift + end.size());
          after_tag(shift ? sign : 0, open == Token::Kind::open_tag);
          return;
        }
      }
      word(&brackets);
    }
  }
  void word(int* brackets) {
    const char c = text_[at_];
    if (c == '"' || c == '\'') return string();
    if (is_digit(c)) return number();
    if (is_letter(c)) {
      size_t end = at_;
      while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
      put(Token::Kind::name, std::string(text_.substr(at_, end - at_)));
      return move_to(end);
    }
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : 0;
    if ((next == '=' && (c == '=' || c == '!' || c == '<' || c == '>')) ||
        (next == c && (c == '*' || c == '/'))) {
      put(Token::Kind::sign, std::string({c, next}));
      return move_to(at_ + 2);
    }
    if (std::string_view("+-*/%~|.,:()[]{}<>=").find(c) == text_.npos)
      wrong(fmt::format("unexpected character with code {}", static_cast<unsigned char>(c)));
    if (c == '(' || c == '[' || c == '{') ++*brackets;
    if (c == ')' || c == ']' || c == '}') *brackets = std::max(0, *brackets - 1);
    put(Token::Kind::sign, std::string(1, c));
    move_to(at_ + 1);
  }
  void number() {
    size_t end = at_;
    bool real = false;
    std::string digits;
    const auto take = [&] {
      while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '_'))
        if (text_[end++] != '_') digits += text_[end - 1];
    };
    take();
    // A dot followed by a digit: 1.5, but not x[1].name.
    if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
      real = true;
      digits += text_[end++];
      take();
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t digit = end + 1;
      if (digit < text_.size() && (text_[digit] == '-' || text_[digit] == '+')) ++digit;
      if (digit < text_.size() && is_digit(text_[digit])) {
        real = true;
        digits += text_.substr(end, digit - end);
        end = digit;
        take();
      }
    }
    put(real ? Token::Kind::number : Token::Kind::integer, std::move(digits));
    move_to(end);
  }
  void string() {
    const char quote = text_[at_];
    std::string out;
    size_t at = at_ + 1;
    for (; at < text_.size() && text_[at] != quote; ++at) {
      if (text_[at] == '\\' && at + 1 < text_.size())
        at = escape(at + 1, &out);
      else
        out += text_[at];
    }
    if (at >= text_.size()) wrong("a string is not closed");
    put(Token::Kind::string, std::move(out));
    move_to(at + 1);
  }
  // Decodes Python's escapes; returns the position of the last character consumed.
  size_t escape(size_t at, std::string* out) const {
    static constexpr std::string_view kFrom = "nrtbfva0", kTo{"\n\r\t\b\f\v\a\0", 8};
    const char c = text_[at];
    if (const size_t which = kFrom.find(c); which != kFrom.npos) {
      *out += kTo[which];
    } else if (c == '\\' || c == '\'' || c == '"') {
      *out += c;
    } else if (c == '\n') {
      // A line continuation.
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      for (size_t i = 1; i <= digits; ++i) {
        const char d = at + i < text_.size() ? text_[at + i] : 0;
        const char lower = static_cast<char>(d | 0x20);
        const int value = is_digit(d)                    ? d - '0'
                          : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                         : -1;
        if (value < 0) wrong("a \\x or \\u escape has too few digits");
        code = code << 4 | static_cast<uint32_t>(value);
      }
      append_utf8(code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0xfffd : code, out);
      return at + digits;
    } else {
      (*out += '\\') += c;
    }
    return at;
  }

  Budget* budget_;
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool trim_next_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(Budget& budget, std::string_view text) { return Lexer(&budget, text).run(); }

}  // namespace prism::llm::jinja
