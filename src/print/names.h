// Creates identifiers that are legal and unique in every language of the C family.
#pragma once

#include <set>
#include <string>

namespace prism {

class Names {
 public:
  // An unused identifier similar to `wanted`.
  std::string unique(const std::string& wanted);

 private:
  std::set<std::string> taken_;
};

// `text` reduced to letters, digits and single underscores, starting with a letter.
std::string legal_identifier(const std::string& text);

}  // namespace prism
