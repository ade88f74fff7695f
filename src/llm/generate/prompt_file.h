// A file of the prompt cache: the keys and values of one block of tokens.
//
// All numbers are little-endian. In order: the mark "PRISMKV1"; the 64 hexadecimal digits of the
// layout and of the parent; u32 tokens, u32 layers; the tokens as i32; u64 bytes of each layer; the
// keys and values, layer by layer; and 32 hexadecimal digits of FastHash over all that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prism::llm {

struct PromptFile {
  // Identifies the model, the cache type, the block size and the version of this format.
  std::string layout;
  std::string parent;  // the key of the block before; kNoParent: none
  std::vector<int32_t> tokens;
  // Keys, then values, in the layout of files: the same whatever device they come from. Empty: left
  // out, because a windowed layer has forgotten them.
  std::vector<std::span<const std::byte>> layers;

  static const std::string kNoParent;
  // Identifies the tokens of a block and all tokens before them: SHA-256 of layout, parent and
  // tokens, so that nobody finds two prompts with the same key.
  static std::string key(const std::string& layout, const std::string& parent,
                         std::span<const int32_t> tokens);

  std::vector<std::byte> text() const;
  // The layers are views of `bytes`. Throws kCorruptFile with the reason.
  static PromptFile parse(std::span<const std::byte> bytes);
  // The bytes of a file whose layers have layer_bytes together.
  static uint64_t bytes_of(uint64_t tokens, uint64_t layers, uint64_t layer_bytes);
};

}  // namespace prism::llm
