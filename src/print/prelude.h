// The prelude of printed text: small functions and types that wrap vendor intrinsics, printed only
// if used.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace prism {

struct PreludeItem {
  std::string names;  // identifiers that require this text, separated by spaces; empty:
                      // always printed
  std::string text;
  // The tests' host compiler cannot compile it (inline assembly); the shim provides a function of
  // that name.
  bool device_only = false;
};

// The items that `text` uses, directly or indirectly, in order. An item uses only earlier ones.
std::string used_prelude(const std::vector<PreludeItem>& items, const std::string& text);

}  // namespace prism
