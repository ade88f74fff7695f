// The rules of JSON that grammars made from schemas share: values, spaces, the formats of strings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

// The right side of a shared rule: value, object, array, string, char, number, integer, boolean,
// null, space, and the formats.
const std::string& json_rule(const std::string& name);
// The shared rules that one refers to.
std::vector<std::string> json_rules_in(const std::string& name);
// Whether a format of strings (date, uuid ...) has a rule; others are remarks that bind nobody.
bool is_json_format(const std::string& name);

// A text as a literal of a grammar.
std::string grammar_literal(std::string_view text);

}  // namespace prism::llm
