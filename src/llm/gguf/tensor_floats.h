// Converts elements of tensors to floats and back, a piece at a time.
#pragma once

#include <cstddef>
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

// Decodes to.size() elements. Converts integers too.
void to_floats(ElementType type, const std::byte* from, std::span<float> to, ThreadPool& pool);
// Encodes whole rows as f32, f16, bf16 or blocks. importance: how much the error of each column
// counts in blocks; null: all alike. Throws kInvalidArgument naming the element that is not finite
// or that the type cannot hold.
void from_floats(ElementType type, std::span<const float> values, uint64_t rows,
                 std::span<std::byte> to, ThreadPool& pool, const float* importance = nullptr);

}  // namespace prism::llm
