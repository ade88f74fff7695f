// A recursive-descent parser for templates.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "llm/template/template_ast.h"
#include "llm/template/template_lexer.h"

namespace prism::llm::jinja {

class Parser {
 public:
  Parser(Budget* budget, std::vector<Token> tokens) : budget_(budget), tokens_(std::move(tokens)) {}
  // Parses statements up to one of the ends, whose word is next; no ends: to the end of the
  // template.
  Block block(std::initializer_list<std::string_view> ends);

 private:
  // Trees are walked recursively, so their height is limited: 200 levels of the largest frame fit
  // into a thread's stack many times over.
  static constexpr int kDeepest = 200;
  class Nested {
   public:
    explicit Nested(Parser* parser, int levels = 1);
    Nested(const Nested&) = delete;
    ~Nested() { parser_->depth_ -= levels_; }

   private:
    Parser* parser_;
    int levels_;
  };

  // --- template_parser.cpp
  std::string block_and_end(Block* body, std::initializer_list<std::string_view> ends);
  void read_tag(Statement* out);
  void read_body(Statement* out, std::string_view end);
  void read_choice(Statement* out);
  void read_loop(Statement* out);
  void read_set(Statement* out);
  void read_parameters(Statement* out);

  const Token& peek() const { return tokens_[next_]; }
  bool at(Token::Kind kind, std::string_view text = "") const {
    return peek().kind == kind && (text.empty() || peek().text == text);
  }
  bool at_sign(std::string_view text) const { return at(Token::Kind::sign, text); }
  bool at_word(std::string_view text) const { return at(Token::Kind::name, text); }
  bool take(Token::Kind kind, std::string_view text = "");
  void need(Token::Kind kind, std::string_view text = "");
  std::string need_name();
  void close_tag() { need(Token::Kind::close_tag); }
  [[noreturn]] void wrong(const std::string& message) const;
  std::string describe() const;

  // --- template_expressions.cpp, lowest precedence first
  ExpressionPtr expression();  // with "if ... else ..."
  ExpressionPtr expression_or_tuple();
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary();
  ExpressionPtr postfix(ExpressionPtr of);
  ExpressionPtr filters(ExpressionPtr input);  // filters and tests
  ExpressionPtr test(ExpressionPtr of);
  ExpressionPtr subscript(ExpressionPtr of);
  void read_arguments(Expression* call);
  ExpressionPtr node(Expression::Kind kind, std::string text = "") const;
  ExpressionPtr binary(std::string sign, ExpressionPtr left, ExpressionPtr right) const;

  Budget* budget_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0, loops_ = 0;
};

}  // namespace prism::llm::jinja
