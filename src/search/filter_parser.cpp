// Parses the text form of filters by recursive descent.
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "prism/error.h"
#include "search/filter.h"

namespace prism::search {

namespace {

using Node = Filter::Node;
using Kind = Node::Kind;
using Order = Node::Order;
using NodePointer = std::shared_ptr<const Node>;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NodePointer parse() {
    NodePointer node = either();
    skip_spaces();
    if (at_ != text_.size()) fail("the end, and, or or");
    return node;
  }

 private:
  static constexpr int kMaximumDepth = 64;

  [[noreturn]] void fail(const std::string& needed) const {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("filter: at character {} of '{}': {} expected", at_ + 1, text_, needed));
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view symbol) {
    skip_spaces();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  }
  std::string_view peek_name() {
    skip_spaces();
    size_t end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  bool take_word(std::string_view word) {
    if (peek_name() != word) return false;
    at_ += word.size();
    return true;
  }

  NodePointer either() {
    if (++depth_ > kMaximumDepth) fail("at most 64 levels of brackets and not");
    Node node{Kind::one_of};
    do node.parts.push_back(both());
    while (take_word("or"));
    --depth_;
    return node.parts.size() == 1 ? node.parts[0] : std::make_shared<const Node>(std::move(node));
  }

  NodePointer both() {
    Node node{Kind::all_of};
    do node.parts.push_back(single());
    while (take_word("and"));
    return node.parts.size() == 1 ? node.parts[0] : std::make_shared<const Node>(std::move(node));
  }

  NodePointer single() {
    if (take_word("not")) {
      if (++depth_ > kMaximumDepth) fail("at most 64 levels of brackets and not");
      Node node{Kind::none_of};
      node.parts.push_back(single());
      --depth_;
      return std::make_shared<const Node>(std::move(node));
    }
    if (take("(")) {
      NodePointer inner = either();
      if (!take(")")) fail("a closing bracket");
      return inner;
    }
    return condition();
  }

  NodePointer condition() {
    const std::string_view name = peek_name();
    if (name.empty()) fail("the name of a field");
    at_ += name.size();
    Node node{Kind::compare};
    node.field = name;
    if (take_word("in")) {
      node.kind = Kind::one_of_values;
      if (!take("(")) fail("an opening bracket");
      do node.values.push_back(value());
      while (take(","));
      if (!take(")")) fail("a closing bracket");
      return std::make_shared<const Node>(std::move(node));
    }
    node.order = take("==")   ? Order::equal
                 : take("!=") ? Order::unequal
                 : take("<=") ? Order::less_equal
                 : take(">=") ? Order::greater_equal
                 : take("<")  ? Order::less
                 : take(">")  ? Order::greater
                              : (fail("one of == != < <= > >= in"), Order::equal);
    node.values.push_back(value());
    return std::make_shared<const Node>(std::move(node));
  }

  FieldValue value() {
    skip_spaces();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted();
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    int64_t integer = 0;
    double number = 0;
    const auto as_integer = std::from_chars(begin, end, integer);
    const auto as_number = std::from_chars(begin, end, number);
    const bool whole = as_integer.ec == std::errc() && as_integer.ptr == as_number.ptr;
    if (as_number.ec != std::errc()) fail("a number or a quoted text");
    at_ += static_cast<size_t>(as_number.ptr - begin);
    if (at_ < text_.size() && is_name(text_[at_])) fail("a number");
    return whole ? FieldValue(integer) : FieldValue(number);
  }

  // A backslash quotes the next character.
  std::string quoted() {
    const char mark = text_[at_++];
    std::string value;
    for (; at_ < text_.size() && text_[at_] != mark; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_];
    }
    if (at_ >= text_.size()) fail("a closing quotation mark");
    ++at_;
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Filter Filter::parse(const std::string& text) { return Filter(Parser(text).parse()); }

}  // namespace prism::search
