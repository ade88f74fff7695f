// Wraps text at spaces.
#include "cli/text_wrap.h"

#include <algorithm>
#include <sstream>

namespace prism::cli {
namespace {

// Counts characters on the screen: continuation bytes of UTF-8 do not count.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string wrapped(const std::string& text, size_t columns, size_t indent) {
  const std::string margin = "\n" + std::string(indent, ' ');
  std::string result;
  std::istringstream lines(text);
  bool is_first = true;
  for (std::string line; std::getline(lines, line); is_first = false) {
    if (!is_first) result += line.empty() ? "\n" : margin;
    if (line.starts_with(" ")) {
      result += line;
      continue;
    }
    size_t at = indent;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (at > indent && at + 1 + width(word) > columns) {
        result += margin;
        at = indent;
      } else if (at > indent) {
        result += ' ';
        ++at;
      }
      result += word;
      at += width(word);
    }
  }
  return result;
}

}  // namespace prism::cli
