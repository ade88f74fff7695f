// Moves blocks between the KV cache and the folder of the prompt cache.
#include "llm/generate/prompt_cache.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/sha256.h"
#include "llm/gguf/file_checksum.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

std::string layout_of(const std::string& checksum, const Model& model) {
  const std::string text = fmt::format("prompt cache 1\n{}\n{}", checksum, model.cache_layout());
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

}  // namespace

PromptCache::PromptCache(const std::string& folder, uint64_t most_bytes, const GgufFile& file,
                         const Model& model)
    : store_(folder, most_bytes, file_checksum(file), layout_of(file_checksum(file), model)) {}

std::vector<std::string> PromptCache::keys(std::span<const int32_t> tokens, int64_t block) const {
  const auto count = static_cast<size_t>(block);
  std::vector<std::string> keys;
  for (; tokens.size() >= count; tokens = tokens.subspan(count))
    keys.push_back(PromptFile::key(
        store_.layout(), keys.empty() ? PromptFile::kNoParent : keys.back(), tokens.first(count)));
  return keys;
}

void PromptCache::keep(std::span<const int32_t> tokens, const PrefixTree& tree,
                       const KvCache& cache) {
  const PrefixTree::Tables tables = tree.known_blocks(tokens);
  const std::vector<std::string> all = keys(tokens, cache.block());
  const auto block = static_cast<size_t>(cache.block());
  std::vector<std::byte> memory(cache.block_bytes());
  for (size_t entry = 0; entry < std::min(all.size(), tables[0].size()); ++entry) {
    if (store_.is_full()) return;
    if (store_.has(all[entry])) continue;
    PromptFile file{store_.layout(), entry > 0 ? all[entry - 1] : PromptFile::kNoParent, {}, {}};
    const auto own = tokens.subspan(entry * block, block);
    file.tokens.assign(own.begin(), own.end());
    std::span<std::byte> left = memory;
    try {
      for (size_t layer = 0; layer < cache.layers(); ++layer) {
        const int32_t from = tables[cache.group_of(static_cast<int64_t>(layer))][entry];
        file.layers.emplace_back();
        if (from == CacheBlocks::kNone) continue;
        const auto bytes = left.first(cache.block_bytes(layer));
        left = left.subspan(bytes.size());
        cache.read_block(layer, from, bytes);
        file.layers.back() = bytes;
      }
    } catch (const Error&) {
      return;  // a device has failed, which the next step finds too
    }
    store_.write(all[entry], entry, file.text());
  }
}

bool PromptCache::restore_block(const std::string& key, uint64_t depth,
                                const std::vector<bool>& wanted, PrefixTree& tree, KvCache& cache,
                                std::vector<int32_t>& blocks) {
  const auto found = store_.read(key, depth,
                                 PromptFile::bytes_of(static_cast<uint64_t>(cache.block()),
                                                      cache.layers(), cache.block_bytes()));
  if (!found || found->file.layers.size() != cache.layers()) return false;
  for (size_t group = 0; group < wanted.size(); ++group) {
    if (!wanted[group]) continue;
    while (cache.blocks(group).free() == 0)
      if (!tree.evict(group)) return false;
    blocks[group] = cache.blocks(group).allocate();
  }
  for (size_t layer = 0; layer < cache.layers(); ++layer) {
    const size_t group = cache.group_of(static_cast<int64_t>(layer));
    if (!wanted[group]) continue;
    if (found->file.layers[layer].size() != cache.block_bytes(layer)) return false;
    cache.write_block(layer, blocks[group], found->file.layers[layer]);
  }
  return true;
}

PromptCache::Restored PromptCache::restore(std::span<const int32_t> tokens, int64_t known,
                                           PrefixTree& tree, KvCache& cache, uint64_t most_bytes) {
  const auto block = static_cast<size_t>(cache.block());
  const auto first = static_cast<size_t>(known) / block;
  const std::vector<std::string> all = keys(tokens, cache.block());
  size_t there = first;
  while (there < all.size() && store_.has(all[there])) ++there;
  const size_t end =
      std::min(there, first + std::max<uint64_t>(1, most_bytes / cache.block_bytes()));
  if (first == end) return {};

  std::vector<std::vector<int32_t>> tables(cache.groups(), std::vector<int32_t>(first));
  size_t entry = first;
  for (; entry < end; ++entry) {
    std::vector<int32_t> blocks(cache.groups(), CacheBlocks::kNone);
    std::vector<bool> wanted;
    // Of a windowed group, only what the token after these sees.
    for (size_t group = 0; group < cache.groups(); ++group) {
      const int64_t seen = static_cast<int64_t>(end * block) + 1 - cache.window(group);
      wanted.push_back(cache.window(group) == 0 ||
                       static_cast<int64_t>((entry + 1) * block) > seen);
    }
    bool is_whole = false;
    try {
      is_whole = restore_block(all[entry], entry, wanted, tree, cache, blocks);
    } catch (const Error&) {  // a device has failed, which the next step finds too
    }
    for (size_t group = 0; group < blocks.size(); ++group) {
      if (is_whole) tables[group].push_back(blocks[group]);
      if (!is_whole) cache.blocks(group).release(blocks[group]);
    }
    if (!is_whole) break;
  }
  if (entry > first) {
    const std::vector<std::span<const int32_t>> views(tables.begin(), tables.end());
    tree.add(tokens.first(entry * block), views);
  }
  for (size_t group = 0; group < tables.size(); ++group)
    for (const int32_t each : tables[group]) cache.blocks(group).release(each);
  return {static_cast<int64_t>((entry - first) * block), entry == end && end < there};
}

}  // namespace prism::llm
