// Fuzzes the GGUF header parser: no input may cause a crash or a large allocation. Inputs are
// mutated with knowledge of the header's structure, and half of the time as plain bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prism/llm/gguf.h"
#include "support/models/gguf_mutator.h"

using namespace prism;
using namespace prism::llm;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::vector<std::byte> made =
      test::GgufMutator(seed).mutate(std::as_bytes(std::span(data, size)));
  const size_t count = std::min(made.size(), most);
  std::copy_n(reinterpret_cast<const uint8_t*>(made.data()), count, data);
  return count;
}

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
