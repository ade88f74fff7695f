// Divides the memory that a model leaves free among the texts that it generates at once.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "llm/fit/fit_devices.h"
#include "llm/model/kv_cache.h"
#include "prism/error.h"
#include "prism/llm/fit.h"
#include "runtime/counted_device.h"

namespace prism::llm {
namespace {

// Beyond this many texts each gets too few tokens per second to read, on any device so far.
constexpr int64_t kMostTexts = 64;
// The tokens that a text and its answer have, unless the context is shorter: a guess. If texts are
// longer and the cache is full, some wait.
constexpr int64_t kUsualTokens = 2048;
// The cache takes this part of what is left: other programs use the host's memory, and few use that
// of an accelerator.
constexpr uint64_t kHostPart = 4, kDevicePart = 2;
// Texts with a full context on a device that does not report its memory.
constexpr int64_t kTextsIfUnknown = 4;

struct Memory {
  uint64_t used_bytes = 0, free_bytes = 0, position_bytes = 0, state_bytes = 0;
  bool is_host = false;
  // The part that the cache may take of what the model and one text leave; or unknown.
  uint64_t part() const {
    if (free_bytes == kUnknownBytes) return kUnknownBytes;
    return (free_bytes - std::min(free_bytes, used_bytes)) / (is_host ? kHostPart : kDevicePart);
  }
};

}  // namespace

SharedCache fit_shared_cache(const Fit& fit, int64_t slots) {
  if (slots < 0)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("fit: {} texts at once; give 1 or more, or 0 for what memory allows", slots));
  const int64_t context = whole_blocks(fit.placement.context), block = cache_block(context);
  const auto positions = static_cast<uint64_t>(cached_positions(fit.placement.context));
  const ElementType type = fit.placement.kv_type;
  std::map<std::string, Memory> memories;
  int64_t most = std::min<int64_t>(slots > 0 ? slots : kMostTexts, INT64_MAX / context) * context;
  for (const DeviceShare& share : fit.shares) {
    Memory& memory = memories[memory_name(share.device)];
    memory.is_host = memory_name(share.device) == kHostMemoryName;
    memory.used_bytes += share.bytes();
    const uint64_t free =
        share.free_bytes > share.margin_bytes ? share.free_bytes - share.margin_bytes : 0;
    memory.free_bytes =
        std::max(memory.free_bytes, share.free_bytes == kUnknownBytes ? kUnknownBytes : free);
    memory.position_bytes += (share.kv_bytes + positions - 1) / positions;
    memory.state_bytes +=
        share.state_bytes * (state_memory(2) - state_memory(1));  // of a text more
    if (share.layers == 0) continue;
    // KvCache: kernels index the elements of a layer's keys with 32 bits.
    const uint64_t row_bytes =
        share.kv_bytes / positions / (2 * static_cast<uint64_t>(share.layers));
    const uint64_t row = std::max<uint64_t>(1, row_bytes / type.block_bytes()) *
                         static_cast<uint64_t>(type.block_elements());
    most =
        std::min(most, static_cast<int64_t>((uint64_t{1} << 32) / row) / block * block - 2 * block);
  }
  // Positions beside those of one text.
  const auto if_unknown = static_cast<uint64_t>((kTextsIfUnknown - 1) * context);
  uint64_t more = memories.empty() ? if_unknown : UINT64_MAX;
  int64_t most_texts = kMostTexts;
  for (const auto& [name, memory] : memories) {
    uint64_t part = memory.part();
    if (part != kUnknownBytes && memory.state_bytes > 0) {
      // Half for states and half for positions, unless the caller gives the number of texts.
      const uint64_t half = memory.position_bytes > 0 ? part / 2 : part;
      const auto fit_in =
          static_cast<int64_t>(std::min<uint64_t>(half / memory.state_bytes, kMostTexts));
      most_texts = std::min(most_texts, 1 + fit_in);
      const uint64_t texts = static_cast<uint64_t>(slots > 0 ? slots : most_texts) - 1;
      part -= std::min(part, texts * memory.state_bytes);
    }
    if (part == kUnknownBytes && memory.state_bytes > 0)
      most_texts = std::min(most_texts, kTextsIfUnknown);
    if (memory.position_bytes == 0) continue;
    more = std::min(more, part == kUnknownBytes ? if_unknown : part / memory.position_bytes);
  }
  SharedCache cache;
  const auto most_more = static_cast<uint64_t>(std::max<int64_t>(most - context, 0));
  cache.tokens = context + static_cast<int64_t>(std::min(more, most_more)) / block * block;
  cache.slots = slots > 0 ? slots
                          : std::clamp<int64_t>(cache.tokens / std::min(context, kUsualTokens), 1,
                                                most_texts);
  return cache;
}

}  // namespace prism::llm
