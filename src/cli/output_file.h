// Checks of a file that a command is about to write.
#pragma once

#include <span>
#include <string>

namespace prism::cli {

// Throws kInvalidArgument if the output is one of the inputs, or exists and may not be replaced.
void check_output(const std::string& output, std::span<const std::string> inputs, bool overwrite);

}  // namespace prism::cli
