// The vocabulary as a prefix tree of bytes, laid out in traversal order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prism::llm {

class VocabularyTrie {
 public:
  // In preorder: a node's children follow it, and `end` is one past its subtree.
  struct Node {
    uint32_t end = 0;
    int32_t token = -1;  // the token that ends here; duplicates by next_same()
    uint16_t depth = 0;  // 1 for children of the root
    uint8_t byte = 0;
  };

  // Texts by id; tokens without a text (control tokens) are omitted.
  explicit VocabularyTrie(std::vector<std::string> texts);

  size_t tokens() const { return texts_.size(); }
  const std::string& text(int32_t token) const { return texts_[static_cast<size_t>(token)]; }
  std::span<const Node> nodes() const { return nodes_; }
  int32_t next_same(int32_t token) const { return next_same_[static_cast<size_t>(token)]; }
  uint32_t depth() const { return depth_; }  // of the deepest node

 private:
  std::vector<std::string> texts_;
  std::vector<Node> nodes_;
  std::vector<int32_t> next_same_;
  uint32_t depth_ = 0;
};

}  // namespace prism::llm
