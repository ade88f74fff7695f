// Edit distance and the text of a suggestion.
#include "base/suggest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace prism {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// The number of letters to insert, remove, replace or swap with their neighbour (the optimal string
// alignment distance), three rows of the table at a time.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = row;
    std::swap(row, next);
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view typed, const std::vector<std::string>& names) {
  const std::string wanted = lower(typed);
  std::string best;
  size_t fewest = std::max<size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& name : names) {
    const std::string candidate = lower(name);
    // A prefix counts as near: "soft" for "softmax".
    const bool begins = wanted.size() >= 3 && candidate.starts_with(wanted);
    const size_t apart =
        std::max(wanted.size(), candidate.size()) - std::min(wanted.size(), candidate.size());
    if (!begins && apart >= fewest) continue;  // as many edits at least
    const size_t distance = begins ? 1 : edits(wanted, candidate);
    if (distance >= fewest) continue;
    fewest = distance;
    best = name;
  }
  return best;
}

std::string valid_names(std::string_view typed, const std::vector<std::string>& names) {
  std::string text = "; ";
  if (const std::string near = nearest_name(typed, names); !near.empty())
    text += "did you mean \"" + near + "\"? Valid names: ";
  else
    text += "valid names: ";
  for (size_t i = 0; i < names.size(); ++i) text += (i ? ", " : "") + names[i];
  return text;
}

}  // namespace prism
