// The tensor types of GGUF files: every number in use, also those that Prism cannot compute with.
#pragma once

#include <cstdint>
#include <optional>

#include "prism/element_type.h"

namespace prism::llm {

struct GgufTensorType {
  uint32_t number;                          // in files
  const char* name;                         // "q4_k", "iq2_xxs"
  uint32_t elements;                        // of a block
  uint32_t bytes;                           // of a block
  std::optional<ElementType> element_type;  // none: sizes are known, values are not
};

// Null for a number that no file should have (also numbers that were used once and taken back).
const GgufTensorType* gguf_tensor_type(uint32_t number);
// The number of a type in files; none for u16, u32, u64 and bool, which files cannot hold.
std::optional<uint32_t> gguf_number(ElementType type);

}  // namespace prism::llm
