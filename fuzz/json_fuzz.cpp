// Fuzzes the JSON schema converter: an accepted schema must give a valid grammar.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "llm/grammar/json_schema.h"
#include "prism/error.h"
#include "prism/llm/grammar.h"

using namespace prism;
using namespace prism::llm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string grammar;
  try {
    grammar = json_schema_to_grammar({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
    return 0;
  }
  try {
    Grammar::parse(grammar).matches("{\"a\": [1, \"b\"]}");
  } catch (const Error& error) {
    // A schema that directly contains itself, or is too ambiguous; any other error means that the
    // converter wrote an invalid grammar.
    const std::string_view what = error.what();
    if (what.find("begins with itself") == what.npos && error.code() != ErrorCode::kNotSupported)
      __builtin_trap();
  }
  return 0;
}
