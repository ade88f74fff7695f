// Fuzzes the GGUF header parser: arbitrary bytes must never cause a crash or a large allocation.
#include <cstddef>
#include <cstdint>
#include <span>

#include "prism/llm/gguf.h"

using namespace prism;
using namespace prism::llm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  // The bytes alone, and as the start of a larger file, which reaches the checks of the file's end.
  for (const uint64_t file_bytes : {uint64_t{0}, uint64_t{size}, uint64_t{1} << 40}) {
    try {
      const GgufFile file = GgufFile::parse(bytes, file_bytes);
      for (const auto& [key, value] : file.metadata()) {
        value.text();
        try {
          file.strings(key);
        } catch (const Error&) {
        }
        try {
          file.integers(key);
        } catch (const Error&) {
        }
        file.find(key)->number();
      }
      for (const GgufTensor& tensor : file.tensors())
        if (file.find_tensor(tensor.name) != &tensor) __builtin_trap();
    } catch (const Error&) {
    }
  }
  return 0;
}
