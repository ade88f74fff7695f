// "Did you mean": finds the valid name nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prism {

// The name with the fewest edits, or empty when none is near (a third of the letters, at least
// one).
std::string nearest_name(std::string_view typed, const std::vector<std::string>& names);

// "; did you mean \"softmax\"? Valid names: a, b, c". The question appears only when a name is
// near.
std::string valid_names(std::string_view typed, const std::vector<std::string>& names);

}  // namespace prism
