// Parses the expressions of templates.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "llm/template/template_parser.h"

namespace prism::llm::jinja {

using Kind = Expression::Kind;

ExpressionPtr Parser::node(Kind kind, std::string text) const {
  budget_->charge(sizeof(Expression) + kContentsBytes);
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->line = peek().line;
  out->text = std::move(text);
  return out;
}

void Expression::adopt(ExpressionPtr part) {
  if (part && (height = std::max(height, part->height + 1)) > kHighest)
    fail(fmt::format("line {}: an expression is nested deeper than {} levels", line, kHighest));
  parts.push_back(std::move(part));
}

void Expression::adopt(std::string name, ExpressionPtr part) {
  adopt(std::move(part));
  named.emplace_back(std::move(name), std::move(parts.back()));
  parts.pop_back();
}

ExpressionPtr Parser::binary(std::string sign, ExpressionPtr left, ExpressionPtr right) const {
  ExpressionPtr out = node(Kind::binary, std::move(sign));
  out->adopt(std::move(left));
  out->adopt(std::move(right));
  return out;
}

ExpressionPtr Parser::expression() {
  const Nested nested(this);
  ExpressionPtr out = disjunction();
  while (take(Token::Kind::name, "if")) {
    ExpressionPtr choice = node(Kind::conditional);
    choice->adopt(std::move(out));
    choice->adopt(disjunction());
    choice->adopt(take(Token::Kind::name, "else") ? expression() : nullptr);
    out = std::move(choice);
  }
  return out;
}

ExpressionPtr Parser::expression_or_tuple() {
  ExpressionPtr first = expression();
  if (!at_sign(",")) return first;
  ExpressionPtr out = node(Kind::list);
  out->adopt(std::move(first));
  while (take(Token::Kind::sign, ",")) {
    if (peek().kind == Token::Kind::close_tag || peek().kind == Token::Kind::close_value) break;
    out->adopt(expression());
  }
  return out;
}

ExpressionPtr Parser::disjunction() {
  ExpressionPtr out = conjunction();
  while (take(Token::Kind::name, "or")) {
    out = binary("or", std::move(out), conjunction());
  }
  return out;
}

ExpressionPtr Parser::conjunction() {
  ExpressionPtr out = negation();
  while (take(Token::Kind::name, "and")) {
    out = binary("and", std::move(out), negation());
  }
  return out;
}

ExpressionPtr Parser::negation() {
  if (!take(Token::Kind::name, "not")) return comparison();
  const Nested nested(this);
  ExpressionPtr out = node(Kind::unary, "not");
  out->adopt(negation());
  return out;
}

ExpressionPtr Parser::comparison() {
  ExpressionPtr first = sum();
  ExpressionPtr out;
  while (true) {
    std::string sign;
    for (const char* each : {"==", "!=", "<", "<=", ">", ">="})
      if (at_sign(each)) sign = each;
    if (at_word("in")) sign = "in";
    if (at_word("not") && tokens_[next_ + 1].kind == Token::Kind::name &&
        tokens_[next_ + 1].text == "in") {
      sign = "not in";
      ++next_;
    }
    if (sign.empty()) return out ? std::move(out) : std::move(first);
    ++next_;
    if (!out) {
      out = node(Kind::compare);
      out->adopt(std::move(first));
    }
    out->words.push_back(sign);
    out->adopt(sum());
  }
}

ExpressionPtr Parser::sum() {
  ExpressionPtr out = concatenation();
  while (at_sign("+") || at_sign("-")) {
    std::string sign = tokens_[next_++].text;
    out = binary(std::move(sign), std::move(out), concatenation());
  }
  return out;
}

ExpressionPtr Parser::concatenation() {
  ExpressionPtr out = product();
  while (take(Token::Kind::sign, "~")) {
    out = binary("~", std::move(out), product());
  }
  return out;
}

ExpressionPtr Parser::product() {
  ExpressionPtr out = power();
  while (at_sign("*") || at_sign("/") || at_sign("//") || at_sign("%")) {
    std::string sign = tokens_[next_++].text;
    out = binary(std::move(sign), std::move(out), power());
  }
  return out;
}

ExpressionPtr Parser::power() {
  ExpressionPtr out = unary();
  while (take(Token::Kind::sign, "**")) {
    out = binary("**", std::move(out), unary());
  }
  return out;
}

ExpressionPtr Parser::unary(bool with_filters) {
  const Nested nested(this);
  ExpressionPtr out;
  if (at_sign("-") || at_sign("+")) {
    out = node(Kind::unary, tokens_[next_++].text);
    out->adopt(unary(false));
  } else {
    out = primary();
  }
  out = postfix(std::move(out));
  return with_filters ? filters(std::move(out)) : std::move(out);
}

ExpressionPtr Parser::primary() {
  const Token token = peek();
  ExpressionPtr out = node(Kind::literal);
  switch (token.kind) {
    case Token::Kind::name: {
      ++next_;
      const std::string& name = token.text;
      if (name == "true" || name == "True" || name == "false" || name == "False") {
        out->value = Value::boolean(name[0] == 't' || name[0] == 'T');
      } else if (name == "none" || name == "None") {
        out->value = Value::none();
      } else {
        out->kind = Kind::name;
        out->text = name;
      }
      return out;
    }
    case Token::Kind::string: {
      std::string text;
      while (peek().kind == Token::Kind::string) text += tokens_[next_++].text;
      out->value = Value::string(std::move(text));
      return out;
    }
    case Token::Kind::integer: {
      ++next_;
      int64_t number = 0;
      const char* end = token.text.data() + token.text.size();
      if (std::from_chars(token.text.data(), end, number).ec != std::errc())
        wrong(fmt::format("{} is too large", token.text));
      out->value = Value::integer(number);
      return out;
    }
    case Token::Kind::number: {
      ++next_;
      double number = 0;
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
      out->value = Value::number(number);
      return out;
    }
    default:
      break;
  }
  const auto items = [&](const char* close, bool pairs) {
    while (!take(Token::Kind::sign, close)) {
      out->adopt(expression());
      if (pairs) {
        need(Token::Kind::sign, ":");
        out->adopt(expression());
      }
      if (!at_sign(close)) need(Token::Kind::sign, ",");
    }
  };
  if (take(Token::Kind::sign, "[")) {
    out->kind = Kind::list;
    items("]", false);
    return out;
  }
  if (take(Token::Kind::sign, "{")) {
    out->kind = Kind::dict;
    items("}", true);
    return out;
  }
  if (take(Token::Kind::sign, "(")) {
    if (take(Token::Kind::sign, ")")) {
      out->kind = Kind::list;
      return out;
    }
    ExpressionPtr first = expression();
    if (take(Token::Kind::sign, ")")) return first;
    need(Token::Kind::sign, ",");
    out->kind = Kind::list;
    out->adopt(std::move(first));
    items(")", false);
    return out;
  }
  wrong(fmt::format("found {} instead of a value", describe()));
}

ExpressionPtr Parser::postfix(ExpressionPtr of) {
  while (true) {
    if (take(Token::Kind::sign, ".")) {
      if (at(Token::Kind::integer)) {
        ExpressionPtr out = node(Kind::subscript);
        out->adopt(std::move(of));
        out->adopt(primary());
        of = std::move(out);
        continue;
      }
      ExpressionPtr out = node(Kind::attribute);
      out->text = need_name();
      out->adopt(std::move(of));
      of = std::move(out);
    } else if (take(Token::Kind::sign, "[")) {
      of = subscript(std::move(of));
    } else if (at_sign("(")) {
      ExpressionPtr out = node(Kind::call);
      out->adopt(std::move(of));
      read_arguments(out.get());
      of = std::move(out);
    } else {
      return of;
    }
  }
}

ExpressionPtr Parser::subscript(ExpressionPtr of) {
  ExpressionPtr parts[3];
  int colons = 0;
  while (!at_sign("]")) {
    if (take(Token::Kind::sign, ":")) {
      if (++colons > 2) wrong("a slice has at most two colons");
    } else if (parts[colons]) {
      wrong(fmt::format("found {} instead of ]", describe()));
    } else {
      parts[colons] = expression();
    }
  }
  ExpressionPtr out = node(colons ? Kind::slice : Kind::subscript);
  need(Token::Kind::sign, "]");
  if (!colons && !parts[0]) wrong("[] without an index");
  out->adopt(std::move(of));
  for (int i = 0; i < (colons ? 3 : 1); ++i) out->adopt(std::move(parts[i]));
  return out;
}

void Parser::read_arguments(Expression* call) {
  need(Token::Kind::sign, "(");
  while (!take(Token::Kind::sign, ")")) {
    const bool named = peek().kind == Token::Kind::name &&
                       tokens_[next_ + 1].kind == Token::Kind::sign &&
                       tokens_[next_ + 1].text == "=";
    if (named) {
      std::string name = need_name();
      need(Token::Kind::sign, "=");
      call->adopt(std::move(name), expression());
    } else {
      call->adopt(expression());
    }
    if (!at_sign(")")) need(Token::Kind::sign, ",");
  }
}

ExpressionPtr Parser::filters(ExpressionPtr input) {
  while (true) {
    if (take(Token::Kind::sign, "|")) {
      ExpressionPtr out = node(Kind::filter);
      out->text = need_name();
      out->adopt(std::move(input));
      if (at_sign("(")) read_arguments(out.get());
      input = std::move(out);
    } else if (take(Token::Kind::name, "is")) {
      input = test(std::move(input));
    } else if (at_sign("(") || at_sign(".") || at_sign("[")) {
      if (!input) wrong(fmt::format("found {} instead of a filter", describe()));
      input = postfix(std::move(input));
    } else {
      return input;
    }
  }
}

ExpressionPtr Parser::test(ExpressionPtr of) {
  const bool negated = take(Token::Kind::name, "not");
  ExpressionPtr out = node(Kind::test);
  out->text = need_name();
  out->adopt(std::move(of));
  if (at_sign("(")) {
    read_arguments(out.get());
  } else {
    // One argument may follow without parentheses: x is divisibleby 3.
    const bool word = at(Token::Kind::name) && !at_word("else") && !at_word("or") &&
                      !at_word("and") && !at_word("is") && !at_word("if") && !at_word("not") &&
                      !at_word("in") && !at_word("recursive");
    if (word || at(Token::Kind::string) || at(Token::Kind::integer) || at(Token::Kind::number) ||
        at_sign("[") || at_sign("{"))
      out->adopt(postfix(primary()));
  }
  if (!negated) return out;
  ExpressionPtr no = node(Kind::unary, "not");
  no->adopt(std::move(out));
  return no;
}

}  // namespace prism::llm::jinja
