// The prompt cache: keeps prefixes of texts on disk and brings them back into the KV cache.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "llm/generate/prefix_tree.h"
#include "llm/generate/prompt_store.h"
#include "llm/model/model.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

class PromptCache {
 public:
  // Reads the whole model file once, for its checksum, which is then remembered. Throws what
  // PromptStore throws.
  PromptCache(const std::string& folder, uint64_t most_bytes, const GgufFile& file,
              const Model& model);

  // Keeps the whole blocks of these tokens that the tree has and the folder has not. Blocks that
  // cannot be read from a device are left out.
  void keep(std::span<const int32_t> tokens, const PrefixTree& tree, const KvCache& cache);

  // Adds blocks from the folder to the tree that continue a prefix of `known` tokens.
  struct Restored {
    int64_t tokens = 0;
    bool is_cut = false;  // there are more, beyond the limit
  };
  // most_bytes: about what to read at once. The blocks of the known prefix must have another user
  // than the tree. If memory is short, prefixes that were not used for longest make room.
  Restored restore(std::span<const int32_t> tokens, int64_t known, PrefixTree& tree, KvCache& cache,
                   uint64_t most_bytes);

  void wait() { store_.wait(); }  // until all is written

 private:
  std::vector<std::string> keys(std::span<const int32_t> tokens, int64_t block) const;
  // Reads a block and puts its layers into new blocks of the groups that want it, [group]; false if
  // the file or a block is missing.
  bool restore_block(const std::string& key, uint64_t depth, const std::vector<bool>& wanted,
                     PrefixTree& tree, KvCache& cache, std::vector<int32_t>& blocks);

  PromptStore store_;
};

}  // namespace prism::llm
