// The prelude of printed text: small functions and types behind which vendor intrinsics stand,
// printed where used.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace prism {

struct PreludeItem {
  std::string names;  // identifiers whose use asks for this text, separated by spaces; empty:
                      // always printed
  std::string text;
  // The tests' host compiler cannot compile it (inline assembly); there the shim has a function of
  // that name.
  bool device_only = false;
};

// The items that `text` uses, with those they use themselves, in their order. An item uses only
// earlier ones.
std::string used_prelude(const std::vector<PreludeItem>& items, const std::string& text);

}  // namespace prism
