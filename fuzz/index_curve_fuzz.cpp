// Fuzzes the measured curve of index files: it is rejected, or is the same after it was written
// again, and a search gets an effort from it that was measured.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "prism/error.h"
#include "search/methods/searcher.h"

using namespace prism;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto read = search::Curve::parse({reinterpret_cast<const char*>(data), size});
    const std::string text = read.text();
    if (search::Curve::parse(text).text() != text) std::abort();
    for (const uint64_t k : {1, 10, 100, 2048})
      if (const auto point = read.least(k, 0.95); point && point->effort == 0) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptFile) std::abort();
  }
  return 0;
}
