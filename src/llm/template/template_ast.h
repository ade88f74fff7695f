// The syntax tree of a template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "llm/template/template_value.h"

namespace prism::llm::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    literal,      // value
    name,         // text
    list,         // parts
    dict,         // parts: key, value, key, value
    attribute,    // parts[0].text
    subscript,    // parts[0][parts[1]]
    slice,        // parts[0][parts[1]:parts[2]:parts[3]], the last three may be null
    call,         // parts[0](parts[1], ..., named)
    filter,       // parts[0] | text(parts[1], ..., named); parts[0] null: filters a block
    test,         // parts[0] is text(parts[1], ...)
    unary,        // text: "-", "+", "not"
    binary,       // text: an operator, "and", "or", "in", "not in"
    compare,      // parts[0] text parts[1]; chained in words: a < b < c
    conditional,  // parts[1] ? parts[0] : parts[2], which may be null
  };
  Kind kind = Kind::literal;
  int line = 0;
  std::string text;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> words;

  // Trees are walked recursively, so their height is limited.
  static constexpr int kHighest = 200;
  int height = 1;
  void adopt(ExpressionPtr part);
  void adopt(std::string name, ExpressionPtr part);
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

struct Statement {
  enum class Kind {
    text,       // text
    output,     // value
    choice,     // branches: condition (null: else) and block
    loop,       // for targets in value if condition: body, else otherwise
    set,        // targets = value; or object.text = value
    set_block,  // targets[0] = body, through filters
    macro,      // text(targets with defaults): body
    call,       // {% call(targets) value %} body
    filter,     // body through filters
    scope,      // {% with targets = values %}: body
    plain,      // body unchanged: {% generation %}
    leave,      // break
    next,       // continue
  };
  Kind kind = Kind::text;
  int line = 0;
  std::string text;
  std::vector<std::string> targets;
  ExpressionPtr value, condition;
  std::vector<ExpressionPtr>
      values;  // defaults of a macro, aligned to the last target; values of a scope
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  Block body, otherwise;
};

// Throws kInvalidArgument with the line.
Block parse(Budget& budget, std::string_view text);

}  // namespace prism::llm::jinja
