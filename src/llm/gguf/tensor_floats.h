// The values of a file's tensors as floats, a piece at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "prism/llm/gguf.h"

namespace prism {
class ThreadPool;
}

namespace prism::llm {

// Whole rows, some four million elements at a time, in order. Integers are converted too. Throws
// kNotSupported for a type that Prism cannot compute with.
void for_each_piece(
    const GgufFile& file, const GgufTensor& tensor, ThreadPool& pool,
    const std::function<void(uint64_t first_row, uint64_t rows, std::span<const float>)>& use);

}  // namespace prism::llm
