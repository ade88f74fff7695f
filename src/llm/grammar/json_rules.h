// The JSON rules shared by grammars made from schemas: values, spaces, string formats.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

// The right-hand side of a shared rule: value, object, array, string, char, number, integer,
// boolean, null, space, and the formats.
const std::string& json_rule(const std::string& name);
// The shared rules that a rule refers to.
std::vector<std::string> json_rules_in(const std::string& name);
// The string formats that have a rule: date, uuid and so on.
std::span<const char* const> json_formats();
bool is_json_format(const std::string& name);

// A text as a grammar literal.
std::string grammar_literal(std::string_view text);

}  // namespace prism::llm
