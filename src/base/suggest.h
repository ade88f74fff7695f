// "Did you mean": the nearest of some names to one that was mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prism {

// The name fewest edits away, or empty when none is near (a third of the letters, at least one).
std::string nearest_name(std::string_view typed, const std::vector<std::string>& names);

// "; did you mean \"softmax\"? They are a, b, c", with the question only where a name is near.
std::string valid_names(std::string_view typed, const std::vector<std::string>& names);

}  // namespace prism
