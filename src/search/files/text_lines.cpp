// Finds lines and rates the cuts between them by indentation, closing braces, headings and empty
// lines. No language is parsed: the layout that people and formatters give to code is enough.
#include "search/files/text_lines.h"

#include <algorithm>
#include <array>
#include <utility>

namespace prism::search {
namespace {

constexpr uint32_t kTabColumns = 4;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\f\v");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\f\v") - first + 1);
}

// The end of the first piece of text[begin, end): behind a sentence or a space, within `most`.
size_t piece_end(std::string_view text, size_t begin, size_t end, size_t most) {
  if (end - begin <= most) return end;
  size_t sentence = 0, space = 0;
  for (size_t i = begin + most / 4; i < begin + most; ++i) {
    if (text[i] != ' ' && text[i] != '\t') continue;
    space = i + 1;
    if (std::string_view(".!?;:").find(text[i - 1]) != std::string_view::npos) sentence = i + 1;
  }
  if (sentence != 0) return sentence;
  if (space != 0) return space;
  size_t cut = begin + most;
  while (cut > begin + 1 && (text[cut] & 0xc0) == 0x80) --cut;  // not inside of a character
  return cut;
}

bool starts_with_one(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
}

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Ends a block, or goes on with one.
bool is_closer(std::string_view line) {
  if (line.find_first_of("})]") == 0) return true;
  const auto word = line.substr(0, std::ranges::find_if_not(line, is_word_char) - line.begin());
  static constexpr std::array<std::string_view, 12> kWords = {
      "end",     "else", "elif", "elsif", "except", "catch",
      "finally", "fi",   "done", "esac",  "endif",  "endfunction"};
  return std::ranges::find(kWords, word) != kWords.end();
}

// A comment, decorator, attribute or template line, which belongs to what follows it.
bool is_lead_in(std::string_view line) {
  return starts_with_one(
      line, {"//", "/*", "*", "# ", "##", "@", "#[", "[[", "--", ";;", "\"\"\"", "template", "%"});
}

// A line of the list of headers at the top of a file.
bool is_import(std::string_view line) {
  return starts_with_one(line, {"#include", "import ", "from ", "using ", "use ", "package ",
                                "require", "#pragma", "#define", "extern crate", "mod ", "open "});
}

bool opens_block(std::string_view line) {
  return line.ends_with('{') || line.ends_with(':') || line.ends_with('(');
}

void rate_code(std::string_view text, std::vector<TextLine>& lines) {
  uint32_t unit = UINT32_MAX;  // the smallest indentation
  for (const TextLine& line : lines)
    if (!line.is_blank && !line.continues && line.indent > 0) unit = std::min(unit, line.indent);
  const TextLine* before = nullptr;  // the last line that is not blank
  for (TextLine& line : lines) {
    if (line.is_blank) continue;
    const TextLine* const previous = std::exchange(before, &line);
    if (!previous || line.continues) continue;
    const auto here = trimmed(text.substr(line.begin, line.end - line.begin));
    const auto there = trimmed(text.substr(previous->begin, previous->end - previous->begin));
    const bool has_gap = line.number > previous->number + 1;
    if (is_closer(here) || here == "{") continue;
    const bool ended = is_closer(there) && previous->indent == line.indent;
    if (!has_gap && !ended && is_lead_in(there)) continue;
    if (line.indent == 0 && (has_gap || ended || previous->indent > 0)) {
      line.cut = is_import(here) ? Cut::paragraph : Cut::section;
    } else if (line.indent == unit && (has_gap || ended) &&
               (ended || is_lead_in(here) || opens_block(here))) {
      line.cut = Cut::member;
    } else if (has_gap) {
      line.cut = Cut::paragraph;
    } else if (ended || previous->indent > line.indent || line.indent == 0) {
      line.cut = Cut::statement;
    }
  }
}

bool is_underline(std::string_view line) {
  return line.size() >= 3 && std::string_view("=-~^*#").find(line[0]) != std::string_view::npos &&
         line.find_first_not_of(line[0]) == line.npos;
}

bool is_list_item(std::string_view line) {
  if (starts_with_one(line, {"- ", "* ", "+ ", "| "})) return true;
  const size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  return digits > 0 && digits <= 3 && starts_with_one(line.substr(digits), {". ", ") "});
}

void rate_prose(std::string_view text, bool is_markdown, std::vector<TextLine>& lines) {
  bool has_gap = false, in_fence = false, follows_heading = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    TextLine& line = lines[i];
    if (line.continues) {
      const char last = line.begin >= 2 ? text[line.begin - 2] : ' ';
      if (std::string_view(".!?;:").find(last) != std::string_view::npos) line.cut = Cut::statement;
      continue;
    }
    const auto here = trimmed(text.substr(line.begin, line.end - line.begin));
    if (is_markdown && starts_with_one(here, {"```", "~~~"})) {
      if (!in_fence && has_gap) line.cut = Cut::statement;  // it belongs to the text before it
      in_fence = !in_fence;
      has_gap = false;
      continue;
    }
    if (in_fence) continue;
    if (line.is_blank) {
      has_gap = true;
      continue;
    }
    if (is_markdown) {
      const size_t marks = std::min(here.find_first_not_of("#="), here.size());
      const bool is_marked = marks > 0 && marks <= 6 && marks < here.size() && here[marks] == ' ';
      const bool is_underlined =
          (has_gap || i == 0) && i + 1 < lines.size() && !is_list_item(here) &&
          is_underline(
              trimmed(text.substr(lines[i + 1].begin, lines[i + 1].end - lines[i + 1].begin)));
      if (is_marked || is_underlined) line.heading = is_marked ? static_cast<uint32_t>(marks) : 2;
    }
    if (line.heading != 0)
      line.cut = line.heading <= 3 ? Cut::section : Cut::member;
    else if (follows_heading)
      line.cut = Cut::inside;  // a heading stays with its text
    else if (has_gap)
      line.cut = Cut::paragraph;
    else if (is_list_item(here))
      line.cut = Cut::statement;
    has_gap = false;
    follows_heading = line.heading != 0;
  }
}

}  // namespace

std::vector<TextLine> text_lines(std::string_view text, size_t most) {
  std::vector<TextLine> lines;
  uint32_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    TextLine line{.begin = at, .end = end, .number = number};
    size_t first = at;
    for (; first < end && (text[first] == ' ' || text[first] == '\t'); ++first)
      line.indent += text[first] == '\t' ? kTabColumns - line.indent % kTabColumns : 1;
    line.is_blank = trimmed(text.substr(first, end - first)).empty();
    while (line.end - line.begin > most) {
      const size_t cut = piece_end(text, line.begin, end, most);
      lines.push_back(line);
      lines.back().end = cut;
      line.begin = cut;
      line.continues = true;
    }
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

void rate_cuts(std::string_view text, Structure structure, std::vector<TextLine>& lines) {
  if (structure == Structure::braces || structure == Structure::indents)
    rate_code(text, lines);
  else
    rate_prose(text, structure == Structure::markdown, lines);
}

}  // namespace prism::search
