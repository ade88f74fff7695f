// Parses and matches ignore patterns.
#include "search/files/ignore_rules.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace prism::search {
namespace {

// [[:alpha:]] and its like, over ASCII.
std::optional<int (*)(int)> class_named(std::string_view name) {
  static constexpr std::pair<std::string_view, int (*)(int)> kClasses[] = {
      {"alnum", [](int c) { return std::isalnum(c); }},
      {"alpha", [](int c) { return std::isalpha(c); }},
      {"blank", [](int c) { return static_cast<int>(c == ' ' || c == '\t'); }},
      {"cntrl", [](int c) { return std::iscntrl(c); }},
      {"digit", [](int c) { return std::isdigit(c); }},
      {"graph", [](int c) { return std::isgraph(c); }},
      {"lower", [](int c) { return std::islower(c); }},
      {"print", [](int c) { return std::isprint(c); }},
      {"punct", [](int c) { return std::ispunct(c); }},
      {"space", [](int c) { return std::isspace(c); }},
      {"upper", [](int c) { return std::isupper(c); }},
      {"xdigit", [](int c) { return std::isxdigit(c); }}};
  const auto* const found =
      std::ranges::find(kClasses, name, [](const auto& each) { return each.first; });
  return found == std::end(kClasses) ? std::nullopt : std::optional(found->second);
}

}  // namespace

// Reads a set whose '[' is at text[at]; leaves `at` behind its ']'. False if it has no end.
bool PathPattern::add_set(std::string_view text, size_t& at) {
  std::bitset<256> set;
  size_t i = at + 1;
  const bool is_negated = i < text.size() && (text[i] == '!' || text[i] == '^');
  if (is_negated) ++i;
  int before = -1;  // the first byte of a possible range
  for (bool is_first = true;; is_first = false, ++i) {
    if (i >= text.size()) return false;
    if (text[i] == ']' && !is_first) break;
    if (text.substr(i).starts_with("[:")) {
      const size_t end = text.find(']', i + 2);
      if (end == text.npos) return false;
      if (text[end - 1] == ':' && end > i + 2) {
        const auto test = class_named(text.substr(i + 2, end - i - 3));
        if (!test) return false;
        for (int c = 0; c < 128; ++c)
          if ((*test)(c) != 0) set.set(static_cast<size_t>(c));
        before = -1;
        i = end;
        continue;
      }
    }
    const bool is_range =
        text[i] == '-' && before >= 0 && i + 1 < text.size() && text[i + 1] != ']';
    if (is_range) ++i;
    if (text[i] == '\\' && ++i >= text.size()) return false;
    const auto byte = static_cast<unsigned char>(text[i]);
    for (int c = is_range ? before : byte; c <= byte; ++c) set.set(static_cast<size_t>(c));
    before = is_range ? -1 : byte;
  }
  at = i + 1;
  if (is_negated) set.flip();
  set.reset('/');
  tokens_.push_back({Kind::set, 0, sets_.size()});
  sets_.push_back(set);
  return true;
}

PathPattern::PathPattern(std::string_view text) {
  for (size_t i = 0; i < text.size() && is_valid_;) {
    const char c = text[i];
    if (c == '*') {
      const size_t end = std::min(text.find_first_not_of('*', i), text.size());
      const bool starts_name = i == 0 || text[i - 1] == '/';
      const bool is_double = end - i >= 2 && starts_name;
      if (is_double && end < text.size() && text[end] == '/') {
        tokens_.push_back({Kind::folders});
        i = end + 1;
      } else {
        tokens_.push_back({is_double && end == text.size() ? Kind::all : Kind::some});
        i = end;
      }
    } else if (c == '?') {
      tokens_.push_back({Kind::one});
      ++i;
    } else if (c == '[') {
      is_valid_ = add_set(text, i);
    } else {
      if (c == '\\') ++i;
      is_valid_ = i < text.size();
      if (is_valid_) tokens_.push_back({Kind::byte, static_cast<unsigned char>(text[i])});
      ++i;
    }
  }
}

bool PathPattern::matches(std::string_view path) const {
  if (!is_valid_) return false;
  // now[i]: the bytes so far match the tokens before i.
  std::vector<char> now(tokens_.size() + 1), next(tokens_.size() + 1);
  now[0] = 1;
  for (size_t at = 0;; ++at) {
    const bool starts_name = at == 0 || path[at - 1] == '/';
    for (size_t i = 0; i < tokens_.size(); ++i) {  // what needs no byte
      const Kind kind = tokens_[i].kind;
      if (now[i] &&
          (kind == Kind::some || kind == Kind::all || (kind == Kind::folders && starts_name)))
        now[i + 1] = 1;
    }
    if (at == path.size()) return now[tokens_.size()] != 0;
    const auto byte = static_cast<unsigned char>(path[at]);
    const bool is_name = byte != '/';
    std::ranges::fill(next, 0);
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!now[i]) continue;
      const Token& token = tokens_[i];
      switch (token.kind) {
        case Kind::byte:
          next[i + 1] |= static_cast<char>(byte == token.byte);
          break;
        case Kind::one:
          next[i + 1] |= static_cast<char>(is_name);
          break;
        case Kind::set:
          next[i + 1] |= static_cast<char>(sets_[token.set][byte]);
          break;
        case Kind::some:
          next[i] |= static_cast<char>(is_name);
          break;
        case Kind::all:
        case Kind::folders:
          next[i] = 1;
          break;
      }
    }
    std::swap(now, next);
  }
}

IgnoreRules::IgnoreRules(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    add_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void IgnoreRules::add_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  // Spaces at the end count only behind a backslash.
  size_t end = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size())
      end = ++i + 1;
    else if (line[i] != ' ')
      end = i + 1;
  }
  line = line.substr(0, end);
  if (line.empty() || line[0] == '#') return;
  const bool keeps = line[0] == '!';
  if (keeps) line.remove_prefix(1);
  const bool folders_only = line.ends_with('/');
  if (folders_only) line.remove_suffix(1);
  const bool is_anchored = line.find('/') != line.npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (!line.empty()) rules_.push_back({PathPattern(line), keeps, folders_only, is_anchored});
}

IgnoreRules::Verdict IgnoreRules::verdict(std::string_view path, bool is_folder) const {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule)
    if ((is_folder || !rule->folders_only) &&
        rule->pattern.matches(rule->is_anchored ? path : name))
      return rule->keeps ? Verdict::kept : Verdict::ignored;
  return Verdict::none;
}

}  // namespace prism::search
