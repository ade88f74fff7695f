// Fuzzes the text form of filters: a text is rejected with an error, or becomes a filter.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "prism/error.h"
#include "prism/search.h"

using namespace prism;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    if (search::Filter::parse({reinterpret_cast<const char*>(data), size}).is_empty()) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) std::abort();
  }
  return 0;
}
