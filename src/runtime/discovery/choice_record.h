// A remembered choice as text.
#pragma once

#include <optional>
#include <string>

#include "runtime/discovery/remembered_choice.h"

namespace prism {

// The text with its newlines replaced by spaces, as a record keeps it.
std::string one_line(std::string text);

std::string choice_text(const RememberedChoice& choice);
// Absent for a text that is not a choice.
std::optional<RememberedChoice> parse_choice(const std::string& text);

}  // namespace prism
