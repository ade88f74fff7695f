// Text from files and the network in a form that is safe to show.
#pragma once

#include <string>
#include <string_view>

namespace prism {

enum class Lines {
  escaped,  // one line: newlines and tabs become \n and \t
  kept      // a block of text
};

// Makes everything visible that could control a terminal or disguise a text: control characters,
// separators of lines and marks of the writing direction become \u001b, invalid bytes \xff. Inside
// a JSON string the result denotes the same text.
std::string printable(std::string_view text, Lines lines = Lines::escaped);

}  // namespace prism
