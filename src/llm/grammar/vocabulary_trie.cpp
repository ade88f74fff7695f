// Builds the prefix tree of a vocabulary from its sorted texts.
#include "llm/grammar/vocabulary_trie.h"

#include <algorithm>
#include <numeric>

namespace prism::llm {
namespace {

// Texts longer than any real token are omitted, which limits the depth.
constexpr size_t kLongestText = 4096;

}  // namespace

VocabularyTrie::VocabularyTrie(std::vector<std::string> texts)
    : texts_(std::move(texts)), next_same_(texts_.size(), -1) {
  std::vector<int32_t> order(texts_.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order,
                [&](int32_t id) { return text(id).empty() || text(id).size() > kLongestText; });
  std::ranges::sort(
      order, [&](int32_t a, int32_t b) { return text(a) != text(b) ? text(a) < text(b) : a < b; });
  std::vector<uint32_t> open;  // nodes from the root to the previous text
  std::string_view before;
  for (const int32_t id : order) {
    const std::string& now = text(id);
    const size_t same =
        static_cast<size_t>(std::ranges::mismatch(before, now).in1 - before.begin());
    for (size_t i = same; i < open.size(); ++i)
      nodes_[open[i]].end = static_cast<uint32_t>(nodes_.size());
    open.resize(same);
    for (size_t i = same; i < now.size(); ++i) {
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, -1, static_cast<uint16_t>(i + 1), static_cast<uint8_t>(now[i])});
    }
    Node& last = nodes_[open.back()];
    if (last.token >= 0) next_same_[static_cast<size_t>(id)] = last.token;
    last.token = id;
    depth_ = std::max(depth_, static_cast<uint32_t>(now.size()));
    before = now;
  }
  for (const uint32_t each : open) nodes_[each].end = static_cast<uint32_t>(nodes_.size());
}

}  // namespace prism::llm
