// Translates number ranges to parts of a grammar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::llm {

// The right-hand side of a GBNF rule for decimal integers from minimum to maximum; an open end
// allows up to 16 digits.
std::string integer_grammar(std::optional<int64_t> minimum, std::optional<int64_t> maximum);
// The same for numbers with up to 16 decimals, without an exponent.
std::string decimal_grammar(std::optional<int64_t> minimum, std::optional<int64_t> maximum);

}  // namespace prism::llm
