// Validates the input of quantisation and encodes it block by block.
#include "cpu/quantise/quantise.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "base/system/thread_pool.h"
#include "cpu/quantise/quantise_blocks.h"
#include "prism/error.h"

namespace prism::cpu {

namespace {

[[noreturn]] void refuse(BlockType type, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("quantise {}: {}", block_info(type).name, why));
}

// The largest magnitude that a type can always represent: an f16 factor of at most 65504 times the
// scales and codes of the shorter side.
float reach(BlockType type) {
  constexpr float kHalf = 65504.0f;
  switch (type) {
    case BlockType::q4_0:
      return kHalf * 7;
    case BlockType::q5_0:
      return kHalf * 15;
    case BlockType::q8_0:
      return kHalf * 127;
    case BlockType::q4_1:
    case BlockType::q5_1:
      return kHalf;
    case BlockType::q2_k:
      return kHalf * 15;
    case BlockType::q3_k:
      return kHalf * 31 * 3;
    case BlockType::q4_k:
    case BlockType::q5_k:
      return kHalf * 63;
    case BlockType::q6_k:
      return kHalf * 127 * 31;
    default:
      return HUGE_VALF;
  }
}

void check_writable(BlockType type) {
  if (can_quantise(type)) return;
  std::string names;
  for (int i = 0; i < kBlockTypeCount; ++i)
    if (can_quantise(static_cast<BlockType>(i)))
      names += fmt::format("{}{}", names.empty() ? "" : ", ",
                           block_info(static_cast<BlockType>(i)).name);
  refuse(type, "this type can be read but not written; use one of " + names);
}

// name(i) describes element i in messages.
template <class Name>
void check_elements(BlockType type, const float* x, uint32_t count, float most, Name name) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i]))
      refuse(type, fmt::format("{} is {}; only finite numbers can be quantised", name(i), x[i]));
    if (std::abs(x[i]) > most)
      refuse(type, fmt::format("{} is {}, and its scales reach at most {}; scale the tensor down",
                               name(i), x[i], most));
  }
}

// The weights of a block: those given, or 1.
template <class Name>
void gather_weights(BlockType type, const float* importance, uint32_t count, float* w, Name name) {
  float sum = 0;
  if (importance) {
    for (uint32_t i = 0; i < count; ++i) {
      if (!std::isfinite(importance[i]) || importance[i] < 0)
        refuse(type, fmt::format("the importance of {} is {}; it must be finite and 0 or more",
                                 name(i), importance[i]));
      w[i] = importance[i];
      sum += w[i];
    }
  }
  if (!(sum > 0)) std::fill(w, w + count, 1.0f);
}

// Encodes `count` blocks of x; importance has as many elements as x, or is null. name(e) describes
// element e of x.
template <class Name>
void encode_blocks(BlockType type, const float* x, void* blocks, uint64_t count,
                   const float* importance, Name name) {
  const float most = reach(type);
  with_block(type, [&]<class Block>(Block*) {
    if constexpr (requires(Block & block) { encode(x, x, block); }) {
      constexpr uint32_t kCount = Block::kElements;
      float w[kCount];
      for (uint64_t b = 0; b < count; ++b) {
        const auto here = [&](uint32_t i) { return name(b * kCount + i); };
        check_elements(type, x + b * kCount, kCount, most, here);
        gather_weights(type, importance ? importance + b * kCount : nullptr, kCount, w, here);
        encode(x + b * kCount, w, static_cast<Block*>(blocks)[b]);
      }
    }
  });
}

}  // namespace

bool can_quantise(BlockType type) {
  return with_block(type, []<class Block>(Block* block) {
    return requires(const float* x) { encode(x, x, *block); };
  });
}

void quantise(BlockType type, const float* x, void* blocks, uint64_t elements,
              const float* importance) {
  check_writable(type);
  const uint32_t block = block_info(type).elements;
  if (elements % block != 0)
    refuse(type, fmt::format("{} elements are not whole blocks of {}", elements, block));
  encode_blocks(type, x, blocks, elements / block, importance,
                [](uint64_t e) { return fmt::format("element {}", e); });
}

void quantise(BlockType type, const float* x, void* blocks, uint64_t rows, uint64_t columns,
              const float* importance, ThreadPool& pool) {
  check_writable(type);
  const BlockInfo& info = block_info(type);
  if (columns % info.elements != 0)
    refuse(type, fmt::format("rows have {} elements, which are not whole blocks of {}; keep such a "
                             "tensor in f16",
                             columns, info.elements));
  const uint64_t per_row = columns / info.elements;
  pool.parallel_for(rows, 1, [&](uint64_t first, uint64_t last) {
    for (uint64_t r = first; r < last; ++r)
      encode_blocks(type, x + r * columns, static_cast<uint8_t*>(blocks) + r * per_row * info.bytes,
                    per_row, importance,
                    [r](uint64_t e) { return fmt::format("element {} of row {}", e, r); });
  });
}

}  // namespace prism::cpu
