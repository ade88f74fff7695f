// Regular expressions as parts of a grammar, for the contents of JSON strings.
#pragma once

#include <string>
#include <string_view>

namespace prism::llm {

// What matches the expression (ECMA 262: literals, classes, groups, alternatives, repetitions,
// anchors at both ends), as the right side of a GBNF rule; quotes and backslashes are written as
// JSON writes them. Where an end is not anchored, `any` (the name of a rule) may repeat there.
// Throws kNotSupported for look-around, back references and word borders, kInvalidArgument for
// wrong syntax, with the place in the expression.
std::string regex_to_grammar(std::string_view expression, std::string_view any);

}  // namespace prism::llm
