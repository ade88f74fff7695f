// The paths of the sources, the build folder, the program and the host compiler.
#pragma once

#include <filesystem>
#include <string>

namespace prism::test {

std::filesystem::path source_dir();
std::filesystem::path binary_dir();

// The built program, build/prism.
std::filesystem::path program();

// The compiler that built the tests, for tests that compile printed text.
std::string host_compiler();

// ../shared beside the project's root; tests that need it skip with a message if it does not exist.
std::filesystem::path shared_dir();

}  // namespace prism::test
