// Tests the tree of cached prefixes by example, and against a list of all texts.
#include "llm/generate/prefix_tree.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace prism::llm {
namespace {

using Tokens = std::vector<int32_t>;

// Texts with their own tables, as the KV cache keeps them.
class Texts {
 public:
  Texts(int64_t block, std::vector<CacheBlocks*> groups)
      : block_(block), groups_(std::move(groups)) {}
  // Begins with what the tree has, and gives the rest new blocks; a partly shared block is
  // replaced.
  struct Text {
    Tokens tokens;
    PrefixTree::Tables tables;
    int64_t reused = 0;
  };
  bool begin(PrefixTree& tree, const Tokens& tokens, Text& text) {
    PrefixTree::Match match = tree.find(tokens);
    text = {tokens, std::move(match.tables), match.length};
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const int32_t block : text.tables[g]) groups_[g]->share(block);
    const auto entries =
        (tokens.size() + static_cast<size_t>(block_) - 1) / static_cast<size_t>(block_);
    const auto kept = static_cast<size_t>(match.length / block_);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (size_t entry = kept; entry < text.tables[g].size(); ++entry)
        groups_[g]->release(text.tables[g][entry]);
      text.tables[g].resize(kept);
      while (text.tables[g].size() < entries) {
        while (groups_[g]->free() == 0)
          if (!tree.evict(g)) {
            end(text);
            return false;
          }
        text.tables[g].push_back(groups_[g]->allocate());
      }
    }
    return true;
  }
  void end(Text& text) {
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const int32_t block : text.tables[g]) groups_[g]->release(block);
    text.tables.assign(groups_.size(), {});
  }
  static std::vector<std::span<const int32_t>> views(const Text& text) {
    return {text.tables.begin(), text.tables.end()};
  }

 private:
  int64_t block_;
  std::vector<CacheBlocks*> groups_;
};

TEST(PrefixTree, SharesPrefixesBetweenTexts) {
  CacheBlocks blocks(8);
  PrefixTree tree(4, {{&blocks}});
  Texts texts(4, {&blocks});
  Texts::Text a, b, c;
  ASSERT_TRUE(texts.begin(tree, {1, 2, 3, 4, 5, 6, 7, 8, 9}, a));
  EXPECT_EQ(a.reused, 0);
  tree.add(a.tokens, Texts::views(a));
  EXPECT_EQ(tree.size(), 3u);
  // A running text shares two whole blocks and a part of the third.
  ASSERT_TRUE(texts.begin(tree, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, b));
  EXPECT_EQ(b.reused, 9);
  EXPECT_EQ(b.tables[0][1], a.tables[0][1]);
  EXPECT_NE(b.tables[0][2], a.tables[0][2]);
  // The longer block replaces the shorter one.
  tree.add(b.tokens, Texts::views(b));
  EXPECT_EQ(tree.size(), 3u);
  EXPECT_EQ(blocks.uses(a.tables[0][2]), 1);
  EXPECT_EQ(blocks.uses(b.tables[0][2]), 2);
  // Another continuation within a block is a node of its own.
  ASSERT_TRUE(texts.begin(tree, {1, 2, 3, 4, 5, 6, 0, 0}, c));
  EXPECT_EQ(c.reused, 6);
  EXPECT_EQ(c.tables[0][0], a.tables[0][0]);
  EXPECT_NE(c.tables[0][1], a.tables[0][1]);
  tree.add(c.tokens, Texts::views(c));
  EXPECT_EQ(tree.size(), 4u);
  for (Texts::Text* text : {&a, &b, &c}) texts.end(*text);
  EXPECT_EQ(blocks.free(), 4);
  EXPECT_EQ(tree.evictable(0), 4);
  tree.clear();
  EXPECT_EQ(blocks.free(), 8);
}

TEST(PrefixTree, EvictsTheLeastRecentlyUsedLeaf) {
  CacheBlocks blocks(4);
  PrefixTree tree(2, {{&blocks}});
  Texts texts(2, {&blocks});
  Texts::Text text;
  for (const Tokens& tokens : {Tokens{1, 1, 2, 2}, Tokens{1, 1, 3, 3}, Tokens{4, 4}}) {
    ASSERT_TRUE(texts.begin(tree, tokens, text));
    tree.add(tokens, Texts::views(text));
    texts.end(text);
  }
  EXPECT_EQ(blocks.free(), 0);
  tree.find(Tokens{1, 1, 2, 2});  // now 3, 3 is the oldest leaf
  EXPECT_TRUE(tree.evict(0));
  EXPECT_EQ(tree.find(Tokens{1, 1, 3, 3}).length, 2);
  EXPECT_EQ(tree.find(Tokens{1, 1, 2, 2}).length, 4);
  EXPECT_TRUE(tree.evict(0));
  EXPECT_EQ(tree.find(Tokens{4, 4}).length, 0);
  // Blocks of a running text stay.
  ASSERT_TRUE(texts.begin(tree, {1, 1, 2, 2}, text));
  EXPECT_EQ(tree.evictable(0), 0);
  EXPECT_FALSE(tree.evict(0));
  EXPECT_FALSE(tree.evict(0, text.tables[0][0]));  // other prefixes continue it
  EXPECT_TRUE(tree.evict(0, text.tables[0][1]));   // now the text has it alone
  EXPECT_EQ(blocks.uses(text.tables[0][1]), 1);
  texts.end(text);
  EXPECT_TRUE(tree.evict(0));
  EXPECT_FALSE(tree.evict(0));
  EXPECT_EQ(blocks.free(), 4);
}

// Windowed layers need only the blocks that the next position sees, and forget the oldest first.
TEST(PrefixTree, ContinuesWhatWindowedLayersRemember) {
  CacheBlocks full(9), windowed(9);
  PrefixTree tree(2, {{&full, 0}, {&windowed, 3}});
  Texts texts(2, {&full, &windowed});
  Texts::Text text;
  for (const Tokens& tokens : {Tokens{1, 2}, Tokens{1, 2, 3, 4, 5, 6, 7}}) {
    ASSERT_TRUE(texts.begin(tree, tokens, text));
    tree.add(tokens, Texts::views(text));
    texts.end(text);
  }
  const auto entries = [&](const Tokens& tokens) { return tree.find(tokens).tables[1]; };
  // Position 7 sees keys 5 to 7: the third and fourth block.
  const std::vector<int32_t> seen = entries({1, 2, 3, 4, 5, 6, 7, 8});
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[1], CacheBlocks::kNone);
  EXPECT_NE(seen[2], CacheBlocks::kNone);
  EXPECT_NE(seen[3], CacheBlocks::kNone);
  tree.find(Tokens{1, 2, 3, 4});  // leaves the third and fourth as the oldest
  EXPECT_TRUE(tree.evict(1));
  EXPECT_TRUE(tree.evict(1));
  EXPECT_EQ(windowed.free(), 7);
  EXPECT_EQ(tree.size(), 4u);
  EXPECT_EQ(full.free(), 5);
  // Positions 4 and 5 see what is left; 6 and 7 do not.
  EXPECT_EQ(tree.find(Tokens{1, 2, 3, 4, 5, 6, 7, 8}).length, 4);
  EXPECT_EQ(tree.find(Tokens{1, 2, 3}).length, 3);
}

// Random texts over few tokens, against a list of what was added: a match is never longer than the
// longest common prefix, is exactly that while nothing was evicted, its blocks hold those very
// tokens, and no block is lost.
TEST(PrefixTree, AgreesWithAListOfTexts) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto block = static_cast<int64_t>(1 + random() % 4);
    CacheBlocks blocks(12 + random() % 40);
    PrefixTree tree(block, {{&blocks, 0}});
    Texts texts(block, {&blocks});
    std::vector<Tokens> known;
    std::vector<Texts::Text> running;
    std::map<int32_t, Tokens> content;  // of blocks: the whole text up to their end
    bool evicted = false;
    for (int turn = 0; turn < 200; ++turn) {
      if (!running.empty() && random() % 2 == 0) {
        const size_t which = random() % running.size();
        Texts::Text& text = running[which];
        if (random() % 8 != 0) {
          tree.add(text.tokens, Texts::views(text));
          known.push_back(text.tokens);
        }
        texts.end(text);
        running.erase(running.begin() + static_cast<int64_t>(which));
        continue;
      }
      Tokens tokens;
      if (!known.empty() && random() % 3 != 0) tokens = known[random() % known.size()];
      if (!tokens.empty()) tokens.resize(random() % (tokens.size() + 1));
      for (size_t more = 1 + random() % 6; more > 0; --more)
        tokens.push_back(static_cast<int32_t>(random() % 3));
      int64_t longest = 0;
      for (const Tokens& each : known)
        longest =
            std::max<int64_t>(longest, std::ranges::mismatch(each, tokens).in1 - each.begin());
      const PrefixTree::Match match = tree.find(tokens);
      ASSERT_LE(match.length, longest);
      if (!evicted) {
        ASSERT_EQ(match.length, longest);
      }
      ASSERT_EQ(std::ssize(match.tables[0]), (match.length + block - 1) / block);
      for (int64_t entry = 0; entry * block < match.length; ++entry) {
        const Tokens& held = content[match.tables[0][static_cast<size_t>(entry)]];
        const int64_t end = std::min(match.length, (entry + 1) * block);
        ASSERT_GE(std::ssize(held), end);
        ASSERT_TRUE(std::equal(tokens.begin(), tokens.begin() + end, held.begin()));
      }
      const size_t nodes = tree.size();
      Texts::Text text;
      const bool fits = texts.begin(tree, tokens, text);
      evicted = evicted || tree.size() != nodes;
      if (!fits) continue;
      for (int64_t entry = match.length / block; entry < std::ssize(text.tables[0]); ++entry)
        content[text.tables[0][static_cast<size_t>(entry)]] = Tokens(
            tokens.begin(), tokens.begin() + std::min(std::ssize(tokens), (entry + 1) * block));
      running.push_back(std::move(text));
    }
    for (Texts::Text& text : running) texts.end(text);
    EXPECT_EQ(blocks.free() + tree.evictable(0), blocks.count());
    while (tree.evict(0)) {
    }
    EXPECT_EQ(tree.size(), 0u);
    EXPECT_EQ(blocks.free(), blocks.count());
  }
}

// With states a prefix is continued only where one is known: at the end of the tokens it was given
// for.
TEST(PrefixTree, ContinuesWhereAStateIsKnown) {
  CacheBlocks blocks(8), states(3);
  PrefixTree tree(4, {{&blocks, 0}}, &states);
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<int32_t> table = {blocks.allocate(), blocks.allocate(), blocks.allocate()};
  const auto add = [&](size_t count, int32_t state) {
    tree.add(std::span(text).first(count), {std::span(table)}, state);
  };
  const auto found = [&](const Tokens& tokens) {
    const PrefixTree::Match match = tree.find(tokens);
    return std::pair(match.length, match.state);
  };
  const std::pair<int64_t, int32_t> nothing = {0, CacheBlocks::kNone};
  add(8, CacheBlocks::kNone);
  EXPECT_EQ(found(text), nothing);
  const int32_t first = states.allocate(), second = states.allocate();
  add(4, first);
  add(9, second);
  states.release(first);
  states.release(second);
  EXPECT_EQ(found(text), std::pair(int64_t{9}, second));
  EXPECT_EQ(found({1, 2, 3, 4, 5, 6, 7, 8}), std::pair(int64_t{4}, first));
  EXPECT_EQ(found({1, 2, 3, 4, 9}), std::pair(int64_t{4}, first));
  EXPECT_EQ(found({1, 2, 3}), nothing);
  EXPECT_EQ(tree.find(text).tables[0].size(), 3u);
  EXPECT_EQ(tree.find({1, 2, 3, 4, 9}).tables[0].size(), 1u);
  // The least recently used goes first; a state that a text uses, last.
  states.share(first);
  found(text);
  EXPECT_TRUE(tree.evict_state());
  EXPECT_EQ(found(text), std::pair(int64_t{4}, first));
  EXPECT_TRUE(tree.evict_state());
  EXPECT_FALSE(tree.evict_state());
  EXPECT_EQ(states.uses(first), 1);
  states.release(first);
  EXPECT_EQ(states.free(), 3);
}

}  // namespace
}  // namespace prism::llm
