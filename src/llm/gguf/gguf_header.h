// The header of one GGUF file (or one part of a split one): parsed and checked, not yet joined.
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
  uint64_t data_offset = 0;  // where the tensors' data begins
  std::vector<std::pair<std::string_view, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;  // offsets from the start of the file
};

// name stands in the messages. file_bytes: the size of the whole file, of which bytes are the
// first; 0: unknown, and where tensors end is not checked. Throws kCorruptFile and GgufIncomplete.
GgufHeader parse_gguf_header(const std::string& name, std::span<const std::byte> bytes,
                             uint64_t file_bytes);

}  // namespace prism::llm
