// Text that a command reads from a file or from standard input.
#pragma once

#include <string>

namespace prism::cli {

// "-" is standard input. Throws kNotFound, kInvalidArgument or kIo (base/system/input_file.h).
std::string read_file_or_input(const std::string& path);

}  // namespace prism::cli
