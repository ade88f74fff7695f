// The texts of a vocabulary as a tree of bytes, laid out for walks from the root.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prism::llm {

class VocabularyTrie {
 public:
  // In the order of a walk: a node's children follow it, and what follows them is at `end`.
  struct Node {
    uint32_t end = 0;
    int32_t token = -1;  // that ends here; more of the same text by next_same()
    uint16_t depth = 0;  // of the root's children: 1
    uint8_t byte = 0;
  };

  // By id; tokens without a text (control tokens) are left out.
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
