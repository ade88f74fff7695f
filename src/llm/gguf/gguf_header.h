// The parsed and checked header of one GGUF file, or of one part of a split file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/llm/gguf.h"

namespace prism::llm {

struct GgufHeader {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t data_offset = 0;  // start of the tensor data
  std::vector<std::pair<std::string_view, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;  // offsets from the start of the file
};

// name is used in messages. bytes: the start of a file of file_bytes; 0: size unknown, tensor ends
// are not checked. Throws kCorruptFile and GgufIncomplete.
GgufHeader parse_gguf_header(const std::string& name, std::span<const std::byte> bytes,
                             uint64_t file_bytes);

}  // namespace prism::llm
