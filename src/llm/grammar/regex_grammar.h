// Translates regular expressions to parts of a grammar, for the contents of JSON strings.
#pragma once

#include <string>
#include <string_view>

namespace prism::llm {

// The right-hand side of a GBNF rule for an expression (ECMA 262: literals, classes, groups,
// alternatives, repetitions, anchors at both ends); quotes and backslashes are escaped as in JSON.
// At an end without an anchor, the rule named `any` may repeat. Throws kNotSupported for
// look-around, back references and word boundaries, kInvalidArgument for wrong syntax, with the
// position in the expression.
std::string regex_to_grammar(std::string_view expression, std::string_view any);

}  // namespace prism::llm
