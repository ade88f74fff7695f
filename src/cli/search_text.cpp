// Lays out found passages.
#include "cli/search_text.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "cli/terminal.h"

namespace prism::cli {
namespace {

namespace fs = std::filesystem;
using search::FoundPassage;
using search::Freshness;

constexpr size_t kMaximumColumns = 160;  // of a line of a passage

std::string safe(std::string_view text) {
  std::string spaced;
  for (const char c : text) spaced += c == '\t' ? "    " : std::string(1, c);
  return printable(spaced);
}

struct Line {
  uint64_t number;
  size_t begin, end;
};

std::vector<Line> lines_of(const FoundPassage& passage) {
  std::vector<Line> lines;
  uint64_t number = passage.first_line;
  for (size_t at = 0; at <= passage.text.size();) {
    const size_t end = std::min(passage.text.find('\n', at), passage.text.size());
    lines.push_back({number++, at, end});
    at = end + 1;
  }
  return lines;
}

// A long line is shown from a little before its first mark.
std::string marked_line(const FoundPassage& passage, Line line) {
  const std::string& text = passage.text;
  const auto first = std::ranges::find_if(
      passage.marks, [&](const auto& mark) { return mark.begin >= line.begin; });
  std::string before, behind;
  if (line.end - line.begin > kMaximumColumns) {
    const bool is_far = first != passage.marks.end() && first->end <= line.end &&
                        first->end - line.begin > kMaximumColumns;
    if (is_far) {
      line.begin = first->begin - kMaximumColumns / 4;
      while ((text[line.begin] & 0xc0) == 0x80) ++line.begin;
      before = "... ";
    }
    if (line.end - line.begin > kMaximumColumns) {
      line.end = line.begin + kMaximumColumns;
      while ((text[line.end] & 0xc0) == 0x80) --line.end;
      behind = " ...";
    }
  }
  std::string shown = before;
  size_t at = line.begin;
  for (const auto& mark : passage.marks) {
    if (mark.begin < at || mark.end > line.end) continue;
    shown += safe(std::string_view(text).substr(at, mark.begin - at));
    shown += paint(Colour::yellow, safe(text.substr(mark.begin, mark.end - mark.begin)));
    at = mark.end;
  }
  return shown + safe(std::string_view(text).substr(at, line.end - at)) + behind;
}

}  // namespace

std::string shown_path(const std::string& path) {
  std::error_code failed;
  const fs::path relative = fs::path(path).lexically_relative(fs::current_path(failed));
  const bool is_inside = !failed && !relative.empty() && *relative.begin() != "..";
  return is_inside ? relative.generic_string() : path;
}

std::string passage_text(const FoundPassage& passage, uint64_t lines) {
  std::string text = paint(
      Colour::bold, fmt::format("{}:{}", printable(shown_path(passage.path)), passage.best_line));
  if (passage.freshness == Freshness::changed)
    text += paint(Colour::red, "  (changed since it was indexed; run prism index)");
  if (passage.freshness == Freshness::missing) text += paint(Colour::red, "  (no longer there)");
  text += "\n";
  if (lines == 0) return text;
  const std::vector<Line> all = lines_of(passage);
  // The best line is among the first, because what follows explains it.
  const size_t best = std::min<size_t>(passage.best_line - passage.first_line, all.size() - 1);
  const size_t shown = std::min<size_t>(lines, all.size());
  const size_t first = std::min(best - std::min<size_t>(best, shown / 3), all.size() - shown);
  for (size_t i = first; i < first + shown; ++i)
    text += fmt::format("{} {} {}\n", i == best ? ">" : " ",
                        paint(Colour::dim, fmt::format("{:5}", all[i].number)),
                        marked_line(passage, all[i]));
  return text;
}

}  // namespace prism::cli
