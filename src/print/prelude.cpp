// Selects the prelude items of a text by the identifiers in it.
#include "print/prelude.h"

#include <cctype>
#include <sstream>

namespace prism {
namespace {

void add_identifiers(const std::string& text, std::set<std::string>& identifiers) {
  std::string current;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      current += c;
    } else if (!current.empty()) {
      identifiers.insert(current);
      current.clear();
    }
  }
}

bool asked_for(const PreludeItem& item, const std::set<std::string>& identifiers) {
  if (item.names.empty()) return true;
  std::istringstream names(item.names);
  for (std::string name; names >> name;)
    if (identifiers.count(name)) return true;
  return false;
}

}  // namespace

std::string used_prelude(const std::vector<PreludeItem>& items, const std::string& text) {
  std::set<std::string> identifiers;
  add_identifiers(text, identifiers);
  std::vector<bool> used(items.size());
  for (size_t i = items.size(); i-- > 0;) {
    if (!asked_for(items[i], identifiers)) continue;
    used[i] = true;
    add_identifiers(items[i].text, identifiers);
  }
  std::string result;
  bool guarded = false;
  const auto guard = [&](bool wanted) {
    if (wanted != guarded) result += wanted ? "#ifndef PRISM_SHIM\n" : "#endif\n";
    guarded = wanted;
  };
  for (size_t i = 0; i < items.size(); ++i) {
    if (!used[i]) continue;
    guard(items[i].device_only);
    result += items[i].text;
    if (result.back() != '\n') result += '\n';
  }
  guard(false);
  return result;
}

}  // namespace prism
