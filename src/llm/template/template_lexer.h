// The text of a template as pieces of plain text and the words of its tags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prism::llm::jinja {

struct Token {
  enum class Kind {
    text,       // between tags, white space already cut as the tags ask for
    open_tag,   // {%
    close_tag,  // %}
    open_value,
    close_value,
    name,
    string,  // without quotes, escapes resolved
    integer,
    number,
    sign,  // an operator or bracket
    end,
  };
  Kind kind = Kind::end;
  std::string text;
  int line = 1;
};

// White space as chat templates expect it: the newline behind a tag and the blanks before it on its
// line are dropped, and a newline at the very end. Throws kInvalidArgument with the line.
std::vector<Token> lex(std::string_view text);

}  // namespace prism::llm::jinja
