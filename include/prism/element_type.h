// The element types of tensors: the plain types of kernels and the block-quantised types of GGUF
// files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "prism/dtype.h"

#pragma GCC visibility push(default)

namespace prism {

// Quantised types store blocks of elements: packed integers with one or more scales.
enum class BlockType : uint8_t {
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  tq1_0,
  tq2_0,
  nvfp4
};
inline constexpr int kBlockTypeCount = 23;

struct BlockInfo {
  const char* name;   // "q4_k"
  uint32_t elements;  // of one block, along the last dimension
  uint32_t bytes;     // of one block in a file
  uint32_t gguf;      // the type's number in GGUF files
};
const BlockInfo& block_info(BlockType type);

class ElementType {
 public:
  constexpr ElementType(DType type) : value_(static_cast<uint8_t>(type)) {}
  constexpr ElementType(BlockType type)
      : value_(static_cast<uint8_t>(kFirstBlock + static_cast<uint8_t>(type))) {}

  constexpr bool is_block() const { return value_ >= kFirstBlock; }
  constexpr DType plain() const { return static_cast<DType>(value_); }  // only for plain types
  constexpr BlockType block() const { return static_cast<BlockType>(value_ - kFirstBlock); }
  constexpr bool operator==(const ElementType&) const = default;

  const char* name() const;  // "f32", "bool", "q4_k"
  static std::optional<ElementType> from_name(std::string_view name);

  uint32_t block_elements() const { return is_block() ? block_info(block()).elements : 1; }
  // Bytes of one block, or of one plain element; bool takes one byte in a tensor.
  uint32_t block_bytes() const;
  // Bytes of a row in a file; elements must be a multiple of the block.
  uint64_t row_bytes(uint64_t elements) const {
    return elements / block_elements() * block_bytes();
  }

 private:
  static constexpr uint8_t kFirstBlock = 64;
  uint8_t value_;
};

}  // namespace prism

#pragma GCC visibility pop
