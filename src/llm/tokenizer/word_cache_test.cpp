// The cache of words begins small and grows; what it finds is what was kept.
#include "llm/tokenizer/word_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace prism::llm {
namespace {

TEST(WordCache, FindsWhatWasKeptWhileItGrows) {
  WordCache cache;
  int found = 0;
  for (int32_t i = 0; i < 2000; ++i) {
    const std::string word = "word " + std::to_string(i);
    const uint64_t hash = std::hash<std::string>{}(word);
    std::vector<int32_t> ids;
    EXPECT_FALSE(cache.find(word, hash, &ids));
    cache.keep(word, hash, std::vector<int32_t>{i, i + 1});
    ASSERT_TRUE(cache.find(word, hash, &ids));
    EXPECT_EQ(ids, (std::vector<int32_t>{i, i + 1}));
    // An earlier word is found with its own ids, or not any more.
    const std::string earlier = "word " + std::to_string(i / 2);
    ids.clear();
    if (!cache.find(earlier, std::hash<std::string>{}(earlier), &ids)) continue;
    ++found;
    EXPECT_EQ(ids, (std::vector<int32_t>{i / 2, i / 2 + 1}));
  }
  EXPECT_GT(found, 1500);
}

}  // namespace
}  // namespace prism::llm
