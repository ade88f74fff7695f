// Writes and parses remembered choices, one value in each line.
#include "runtime/discovery/choice_record.h"

#include <sstream>

namespace prism {

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

std::string choice_text(const RememberedChoice& choice) {
  std::string text;
  for (const std::string& line :
       {choice.id, choice.backend, choice.name, choice.card, choice.driver, choice.why})
    text += one_line(line) + "\n";
  return text;
}

std::optional<RememberedChoice> parse_choice(const std::string& text) {
  std::istringstream lines(text);
  RememberedChoice choice;
  for (std::string* line :
       {&choice.id, &choice.backend, &choice.name, &choice.card, &choice.driver, &choice.why})
    if (!std::getline(lines, *line)) return std::nullopt;
  return choice;
}

}  // namespace prism
