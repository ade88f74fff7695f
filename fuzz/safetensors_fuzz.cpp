// Fuzzes the header of .safetensors files: a header is rejected, or all its tensors are inside the
// file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "prism/error.h"
#include "tensor/io/safetensors_header.h"

using namespace prism;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& [name, entry] : parse_safetensors("file", file)) {
      if (entry.bytes.data() < file.data() ||
          entry.bytes.data() + entry.bytes.size() > file.data() + file.size())
        std::abort();
      safetensors_type_name("file", entry.type);
    }
  } catch (const Error&) {
  }
  return 0;
}
