// Parses the statements of templates; expressions are in template_expressions.cpp.
#include "llm/template/template_parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace prism::llm::jinja {

void Parser::wrong(const std::string& message) const {
  fail(fmt::format("line {}: {}", peek().line, message));
}

std::string Parser::describe() const {
  switch (peek().kind) {
    case Token::Kind::end:
      return "the end";
    case Token::Kind::text:
      return "text";
    case Token::Kind::open_tag:
    case Token::Kind::close_tag:
    case Token::Kind::open_value:
    case Token::Kind::close_value:
      return "the end of the tag";
    default:
      return fmt::format("\"{}\"", peek().text);
  }
}

bool Parser::take(Token::Kind kind, std::string_view text) {
  if (!at(kind, text)) return false;
  ++next_;
  return true;
}

void Parser::need(Token::Kind kind, std::string_view text) {
  if (!take(kind, text))
    wrong(fmt::format("found {} instead of {}", describe(),
                      text.empty() ? "the end of the tag" : text));
}

std::string Parser::need_name() {
  if (peek().kind != Token::Kind::name)
    wrong(fmt::format("found {} instead of a name", describe()));
  return tokens_[next_++].text;
}

Parser::Nested::Nested(Parser* parser, int levels) : parser_(parser), levels_(levels) {
  if ((parser->depth_ += levels) > kDeepest)
    parser->wrong(fmt::format("blocks are nested deeper than {} levels", kDeepest));
}

Block Parser::block(std::initializer_list<std::string_view> ends) {
  const Nested nested(this);
  Block body;
  while (true) {
    const Token& token = peek();
    budget_->charge(sizeof(Statement) + token.text.size());
    auto statement = std::make_unique<Statement>();
    statement->line = token.line;
    if (token.kind == Token::Kind::end) {
      if (ends.size() > 0)
        wrong(fmt::format("the template ends before {{% {} %}}", *(ends.end() - 1)));
      return body;
    }
    if (token.kind == Token::Kind::text) {
      statement->text = token.text;
      ++next_;
    } else if (take(Token::Kind::open_value)) {
      statement->kind = Statement::Kind::output;
      statement->value = expression_or_tuple();
      need(Token::Kind::close_value);
    } else {
      need(Token::Kind::open_tag);
      if (std::ranges::find(ends, peek().text) != ends.end()) return body;
      read_tag(statement.get());
    }
    body.push_back(std::move(statement));
  }
}

// Parses a block and returns the word that ended it; the end of that tag is not consumed.
std::string Parser::block_and_end(Block* body, std::initializer_list<std::string_view> ends) {
  *body = block(ends);
  return need_name();
}

void Parser::read_tag(Statement* out) {
  using Kind = Statement::Kind;
  const std::string word = need_name();
  if (word == "if") {
    read_choice(out);
  } else if (word == "for") {
    read_loop(out);
  } else if (word == "set") {
    read_set(out);
  } else if (word == "macro") {
    out->kind = Kind::macro;
    out->text = need_name();
    read_parameters(out);
    close_tag();
    block_and_end(&out->body, {"endmacro"});
    take(Token::Kind::name);  // its name may be repeated
    close_tag();
  } else if (word == "call") {
    out->kind = Kind::call;
    if (at(Token::Kind::sign, "(")) read_parameters(out);
    out->value = expression();
    if (out->value->kind != Expression::Kind::call) wrong("{% call %} needs a call");
    read_body(out, "endcall");
  } else if (word == "filter") {
    out->kind = Kind::filter;
    --next_;  // the word "filter" stands for the missing input
    tokens_[next_].text = "|";
    tokens_[next_].kind = Token::Kind::sign;
    out->value = filters(nullptr);
    read_body(out, "endfilter");
  } else if (word == "with") {
    out->kind = Kind::scope;
    while (peek().kind == Token::Kind::name) {
      out->targets.push_back(need_name());
      need(Token::Kind::sign, "=");
      out->values.push_back(expression());
      if (!take(Token::Kind::sign, ",")) break;
    }
    read_body(out, "endwith");
  } else if (word == "generation") {
    out->kind = Kind::plain;
    read_body(out, "endgeneration");
  } else if (word == "break" || word == "continue") {
    if (loops_ == 0) wrong(fmt::format("{{% {} %}} outside of a loop", word));
    out->kind = word == "break" ? Kind::leave : Kind::next;
    close_tag();
  } else if (word == "do") {
    out->kind = Kind::set;
    out->value = expression();
    close_tag();
  } else {
    wrong(fmt::format(
        "the tag {{% {} %}} is not supported here; supported are if, for, set, macro, call, "
        "filter, with, raw, generation, do, break, continue",
        word));
  }
}

void Parser::read_body(Statement* out, std::string_view end) {
  close_tag();
  block_and_end(&out->body, {end});
  close_tag();
}

void Parser::read_choice(Statement* out) {
  out->kind = Statement::Kind::choice;
  ExpressionPtr condition = expression();
  while (true) {
    close_tag();
    Block body;
    const std::string end = block_and_end(&body, {"elif", "else", "endif"});
    out->branches.emplace_back(std::move(condition), std::move(body));
    if (end == "endif") break;
    if (!out->branches.back().first) wrong("a branch after {% else %}");
    condition = end == "elif" ? expression() : nullptr;
  }
  close_tag();
}

void Parser::read_loop(Statement* out) {
  out->kind = Statement::Kind::loop;
  const bool bracket = take(Token::Kind::sign, "(");
  do out->targets.push_back(need_name());
  while (take(Token::Kind::sign, ",") && peek().text != "in");
  if (bracket) need(Token::Kind::sign, ")");
  need(Token::Kind::name, "in");
  out->value = disjunction();  // without "if", which belongs to the loop
  if (take(Token::Kind::name, "if")) out->condition = expression();
  if (at(Token::Kind::name, "recursive")) wrong("recursive loops are not supported");
  close_tag();
  ++loops_;
  const std::string end = block_and_end(&out->body, {"else", "endfor"});
  --loops_;
  if (end == "else") {
    close_tag();
    block_and_end(&out->otherwise, {"endfor"});
  }
  close_tag();
}

void Parser::read_set(Statement* out) {
  out->kind = Statement::Kind::set;
  const bool bracket = take(Token::Kind::sign, "(");
  do out->targets.push_back(need_name());
  while (take(Token::Kind::sign, ","));
  if (bracket) need(Token::Kind::sign, ")");
  if (out->targets.size() == 1 && take(Token::Kind::sign, ".")) out->text = need_name();
  if (take(Token::Kind::sign, "=")) {
    out->value = expression_or_tuple();
    close_tag();
    return;
  }
  out->kind = Statement::Kind::set_block;
  if (out->targets.size() != 1 || !out->text.empty())
    wrong("a block {% set %} needs exactly one name");
  if (at(Token::Kind::sign, "|")) out->value = filters(nullptr);
  read_body(out, "endset");
}

void Parser::read_parameters(Statement* out) {
  need(Token::Kind::sign, "(");
  while (!take(Token::Kind::sign, ")")) {
    out->targets.push_back(need_name());
    if (take(Token::Kind::sign, "="))
      out->values.push_back(expression());
    else if (!out->values.empty())
      wrong("a parameter without a default follows one with a default");
    if (!at(Token::Kind::sign, ")")) need(Token::Kind::sign, ",");
  }
}

Block parse(Budget& budget, std::string_view text) {
  return Parser(&budget, lex(budget, text)).block({});
}

}  // namespace prism::llm::jinja
