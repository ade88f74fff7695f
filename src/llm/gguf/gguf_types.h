// The tensor types of GGUF files, including those that Prism cannot compute with.
#pragma once

#include <cstdint>
#include <optional>

#include "prism/element_type.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

struct GgufTensorType {
  uint32_t number;                          // type number in files
  const char* name;                         // "q4_k", "iq2_xxs"
  uint32_t elements;                        // per block
  uint32_t bytes;                           // per block
  std::optional<ElementType> element_type;  // none: only the sizes are known
};

// The table entry of a type number; null for unknown and retired numbers.
const GgufTensorType* gguf_tensor_type(uint32_t number);
// The number of a type in files; none for u16, u32, u64 and bool, which files cannot hold.
std::optional<uint32_t> gguf_number(ElementType type);
// The type in which a loaded model keeps weights: f32 for integers and f64, which products and
// norms do not take, else the type itself.
ElementType loaded_type(ElementType type);
// The same of a tensor of a file, which may be expanded (expanded_types.h); none for types that
// Prism cannot compute with.
std::optional<ElementType> loaded_type(const GgufTensor& tensor);

}  // namespace prism::llm
