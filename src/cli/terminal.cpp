// Paints text, lays out tables and rewrites the progress line.
#include "cli/terminal.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "base/printable.h"
#include "cli/output.h"

namespace prism::cli {
namespace {

using Clock = std::chrono::steady_clock;
std::optional<Clock::time_point> started;
bool shown = false;
constexpr const char* kEmptyLine = "\r\033[K";

// Counts characters on the screen: continuation bytes of UTF-8 do not count.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string paint(Colour colour, const std::string& text, Stream stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  if ((no_colour && *no_colour) || !is_terminal(stream)) return text;
  static constexpr const char* codes[] = {"31", "32", "33", "2", "1"};
  return control_sequence(fmt::format("\033[{}m", codes[static_cast<int>(colour)])) + text +
         control_sequence("\033[0m");
}

void progress(const std::string& text) {
  if (!is_terminal(Stream::error)) return;
  if (!started) started = Clock::now();
  if (Clock::now() - *started < std::chrono::seconds(1)) return;
  std::cerr << control_sequence(kEmptyLine) << printable(text) << std::flush;
  shown = true;
}

void end_progress() {
  if (shown) std::cerr << control_sequence(kEmptyLine) << std::flush;
  started.reset();
  shown = false;
}

std::string table(
    const std::vector<std::string>& heading, const std::vector<std::vector<std::string>>& rows,
    const std::function<std::string(const std::string&, const std::string&)>& paint_cell) {
  std::vector<size_t> widths;
  for (const std::string& cell : heading) widths.push_back(width(cell));
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width(printable(row[i])));
  }
  const auto line = [&](const std::vector<std::string>& cells, bool is_heading) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool last = i + 1 == cells.size();
      const std::string cell = printable(cells[i]);
      const std::string padded = last ? cell : cell + std::string(widths[i] - width(cell) + 2, ' ');
      text += is_heading   ? paint(Colour::bold, padded)
              : paint_cell ? paint_cell(cells[i], padded)
                           : padded;
    }
    return text + "\n";
  };
  std::string text = line(heading, true);
  for (const auto& row : rows) text += line(row, false);
  return text;
}

std::string escaped_text(const std::string& text, std::string_view also) {
  std::string result;
  for (const char c : text) {
    if (also.find(c) != also.npos) result += '\\';
    result += c;
  }
  return printable(result);
}

std::string shown_text(const std::string& text) { return '"' + escaped_text(text, "\"\\") + '"'; }

}  // namespace prism::cli
