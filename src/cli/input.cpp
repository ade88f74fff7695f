// Reads standard input as strictly as files.
#include "cli/input.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <fmt/format.h>

#include "base/system/input_file.h"
#include "prism/error.h"

namespace prism::cli {

std::string read_file_or_input(const std::string& path) {
  if (path != "-") return read_input_file(path);
  std::string text = read_input(std::cin, "standard input");
  if (std::ferror(stdin))  // std::cin takes a failed read for the end
    throw Error(ErrorCode::kIo, fmt::format("standard input cannot be read: {}; is it a folder?",
                                            std::strerror(errno)));
  return text;
}

}  // namespace prism::cli
