// Translates number ranges to parts of a grammar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace prism::llm {

// The right-hand side of a GBNF rule for decimal integers from minimum to maximum; an open end
// allows up to 16 digits.
std::string integer_grammar(std::optional<int64_t> minimum, std::optional<int64_t> maximum);

// An end of a range of numbers, in units of their last decimal: 25 of two decimals is 0.25.
struct DecimalLimit {
  int64_t value = 0;
  bool is_exclusive = false;
};
// The same for numbers, without an exponent. Both limits have this number of decimals. Numbers
// inside may have up to 16 more; integers need none. Empty if there is no number between them.
std::string decimal_grammar(std::optional<DecimalLimit> minimum,
                            std::optional<DecimalLimit> maximum, size_t decimals = 0);

}  // namespace prism::llm
