// Expands blocks of few bits. Elements are stored as in llama.cpp: the first in the lowest bits.
#include "llm/gguf/expanded_types.h"

#include <cstring>

#include "base/system/thread_pool.h"
#include "base/types/block_formats.h"
#include "llm/gguf/gguf_types.h"

namespace prism::llm {

namespace {

constexpr uint32_t kQ1_0 = 41, kQ2_0 = 42;

// The codes of q4_0, whose values are d * (q - 8), at element e.
uint32_t code_of(uint32_t gguf_type, const uint8_t* codes, uint32_t e) {
  if (gguf_type == kQ1_0) return (codes[e / 8] >> e % 8 & 1) != 0 ? 9 : 7;
  return 7 + (codes[e / 4] >> e % 4 * 2 & 3);
}

}  // namespace

std::optional<ElementType> expanded_type(uint32_t gguf_type) {
  if (gguf_type == kQ1_0 || gguf_type == kQ2_0) return BlockType::q4_0;
  return std::nullopt;
}

std::shared_ptr<const std::byte> expanded(uint32_t gguf_type, const std::byte* from,
                                          uint64_t elements, ThreadPool& pool) {
  const GgufTensorType& type = *gguf_tensor_type(gguf_type);
  constexpr uint32_t kEach = BlockQ4_0::kElements, kHalf = kEach / 2;
  const uint32_t parts = type.elements / kEach;
  const std::shared_ptr<BlockQ4_0[]> to(new BlockQ4_0[elements / kEach]);
  pool.parallel_for(elements / type.elements, 1 << 12, [&](uint64_t first, uint64_t last) {
    for (uint64_t block = first; block < last; ++block) {
      const auto* const in = reinterpret_cast<const uint8_t*>(from + block * type.bytes);
      for (uint32_t part = 0; part < parts; ++part) {
        BlockQ4_0& out = to[block * parts + part];
        std::memcpy(&out.d, in, sizeof out.d);
        for (uint32_t i = 0; i < kHalf; ++i) {
          const uint32_t e = part * kEach + i;
          const uint32_t low = code_of(gguf_type, in + sizeof out.d, e),
                         high = code_of(gguf_type, in + sizeof out.d, e + kHalf);
          out.qs[i] = static_cast<uint8_t>(low | high << 4);
        }
      }
    }
  });
  return {to, reinterpret_cast<const std::byte*>(to.get())};
}

}  // namespace prism::llm
