// The only test file with absolute paths; CMake passes them in.
#include "support/paths.h"

namespace prism::test {

std::filesystem::path source_dir() { return PRISM_SOURCE_DIR; }

std::filesystem::path binary_dir() { return PRISM_BINARY_DIR; }

std::filesystem::path program() { return binary_dir() / "prism"; }

std::string host_compiler() { return PRISM_CXX_COMPILER; }

std::filesystem::path shared_dir() { return source_dir().parent_path() / "shared"; }

}  // namespace prism::test
