// Decodes the tensors of a file to floats, a piece at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "prism/llm/gguf.h"

namespace prism {
class ThreadPool;
}

namespace prism::llm {

// Calls use with whole rows in order, about four million elements at a time. Converts integers too.
// Throws kNotSupported for a type that Prism cannot compute with.
void for_each_piece(
    const GgufFile& file, const GgufTensor& tensor, ThreadPool& pool,
    const std::function<void(uint64_t first_row, uint64_t rows, std::span<const float>)>& use);

}  // namespace prism::llm
