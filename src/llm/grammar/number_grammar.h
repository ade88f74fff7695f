// Ranges of numbers as parts of a grammar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::llm {

// Decimal integers from minimum to maximum (either may be open, then up to 16 digits), as the right
// side of a GBNF rule.
std::string integer_grammar(std::optional<int64_t> minimum, std::optional<int64_t> maximum);
// Numbers with up to 16 decimals in that range, without an exponent.
std::string decimal_grammar(std::optional<int64_t> minimum, std::optional<int64_t> maximum);

}  // namespace prism::llm
