// Splits the text of a template into plain text and the tokens of its tags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "llm/template/template_budget.h"

namespace prism::llm::jinja {

struct Token {
  enum class Kind {
    text,       // between tags, white space already trimmed
    open_tag,   // {%
    close_tag,  // %}
    open_value,
    close_value,
    name,
    string,  // without quotes, escapes decoded
    integer,
    number,
    sign,  // an operator or bracket
    end,
  };
  Kind kind = Kind::end;
  std::string text;
  int line = 1;
};

// Trims white space as chat templates expect: the newline after a tag, the blanks before it on its
// line, and a final newline. Throws kInvalidArgument with the line.
std::vector<Token> lex(Budget& budget, std::string_view text);

}  // namespace prism::llm::jinja
