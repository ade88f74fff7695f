// The program as a function: reads the words, runs one command, gives the exit status.
#pragma once

#include <string>

namespace prism::cli {

std::string version();  // "0.1.0"

// 0: right. 1: a check failed, or a device did. 2: a wrong call.
int run(int count, const char* const* words);

}  // namespace prism::cli
