// Types of files that become a larger one with the same values when they are read: Q1_0, whose
// elements are d or -d, and Q2_0, with d times -1 to 2, become Q4_0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "prism/element_type.h"
#include "prism/llm/gguf.h"

namespace prism {
class ThreadPool;
}

namespace prism::llm {

// What a type number of files becomes; none for all others.
std::optional<ElementType> expanded_type(uint32_t gguf_type);

// Expands this many elements, whole blocks, of such a type.
std::shared_ptr<const std::byte> expanded(uint32_t gguf_type, const std::byte* from,
                                          uint64_t elements, ThreadPool& pool);

}  // namespace prism::llm
