// The program as a function: it reads the words, runs one command and returns the exit status.
#pragma once

#include <string>

namespace prism::cli {

std::string version();  // "0.1.0"

// Returns 0 for success, 1 if a check or a device failed, 2 for a wrong call. Throws
// std::bad_alloc.
int run(int count, const char* const* words);

}  // namespace prism::cli
