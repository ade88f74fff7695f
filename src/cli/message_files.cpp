// Replaces each @path in a message by the contents of the file.
#include "cli/message_files.h"

#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "cli/input.h"
#include "prism/error.h"

namespace prism::cli {

std::string with_files(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const bool starts_word = at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1]));
    if (text[at] != '@' || !starts_word) {
      result += text[at++];
      continue;
    }
    if (text.compare(at, 2, "@@") == 0) {
      result += '@';
      at += 2;
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end]))) ++end;
    const std::string path = text.substr(at + 1, end - at - 1);
    std::error_code ignored;
    if (!path.empty() && std::filesystem::is_regular_file(path, ignored)) {
      result += fmt::format("{}:\n```\n{}\n```\n", path, read_file_or_input(path));
    } else if (path.find_first_of("/.") != path.npos) {
      throw Error(ErrorCode::kNotFound,
                  fmt::format("@{}: there is no such file; write @@ for a plain @", path));
    } else {
      result += text.substr(at, end - at);
    }
    at = end;
  }
  return result;
}

}  // namespace prism::cli
