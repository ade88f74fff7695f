// Fuzzes the directory of index files: it is rejected, or is the same after it was written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "prism/error.h"
#include "search/index_file.h"

using namespace prism;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto read = search::Directory::parse("file", {reinterpret_cast<const char*>(data), size});
    const std::string text = read.text();
    if (search::Directory::parse("file", text).text() != text) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptFile) std::abort();
  }
  return 0;
}
