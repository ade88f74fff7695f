// Tests the blocks of states: who has which, what they hold, and what is given up.
#include "llm/model/state_cache.h"

#include <gtest/gtest.h>

#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism::llm {
namespace {

class StateCacheTest : public testing::Test {
 protected:
  // Two layers with states of 2 x 3 and 4 elements; two texts and a side slot: five blocks.
  static StateCache make() {
    Config config;
    config.layers = 2;
    config.each_layer = {{.states = {{2, 3}}}, {.states = {{4}}}};
    Placement placement;
    placement.layers = {Device::cpu(), Device::cpu()};
    return {config, placement, 2, 1};
  }
  static bool never() { return false; }
  static float* values(const StateCache& cache, int64_t layer, int32_t block) {
    const Tensor& states = cache.of_layer(layer)[0];
    const int64_t each = states.elements() / states.size(0);
    return reinterpret_cast<float*>(states.node()->storage[0]->host.get()) + block * each;
  }
};

TEST_F(StateCacheTest, TextsBeginWithZeros) {
  StateCache cache = make();
  EXPECT_TRUE(cache.is_used());
  EXPECT_EQ(cache.blocks().count(), 5);
  EXPECT_EQ(cache.bytes(), 6u * (6 + 4) * 4);
  ASSERT_TRUE(cache.reserve(0, 0, never));
  const int32_t block = cache.block_of(0);
  values(cache, 1, block)[3] = 5;
  cache.advance(0, 7);
  EXPECT_TRUE(cache.holds(0, 7));
  EXPECT_FALSE(cache.holds(0, 6));
  EXPECT_TRUE(cache.holds(0, 0));
  ASSERT_TRUE(cache.reserve(0, 7, never));  // goes on
  EXPECT_EQ(cache.block_of(0), block);
  EXPECT_EQ(values(cache, 1, block)[3], 5);
  ASSERT_TRUE(cache.reserve(0, 0, never));  // begins anew
  EXPECT_EQ(values(cache, 1, cache.block_of(0))[3], 0);
  EXPECT_EQ(cache.length(0), 0);
}

TEST_F(StateCacheTest, ASharedStateIsCopiedBeforeItChanges) {
  StateCache cache = make();
  ASSERT_TRUE(cache.reserve(0, 0, never));
  const int32_t kept = cache.block_of(0);
  values(cache, 0, kept)[4] = 2;
  cache.advance(0, 3);
  cache.blocks().share(kept);  // a prefix that is kept
  cache.truncate(0, 0);
  EXPECT_EQ(cache.block_of(0), CacheBlocks::kNone);
  cache.adopt(1, kept, 3);
  EXPECT_TRUE(cache.holds(1, 3));
  ASSERT_TRUE(cache.reserve(1, 3, never));
  EXPECT_NE(cache.block_of(1), kept);
  EXPECT_EQ(values(cache, 0, cache.block_of(1))[4], 2);
  values(cache, 0, cache.block_of(1))[4] = 9;
  EXPECT_EQ(values(cache, 0, kept)[4], 2);
}

TEST_F(StateCacheTest, AStateThatHasSeenTooMuchIsGivenUp) {
  StateCache cache = make();
  ASSERT_TRUE(cache.reserve(0, 0, never));
  cache.advance(0, 5);
  cache.truncate(0, 5);
  EXPECT_TRUE(cache.holds(0, 5));
  cache.truncate(0, 4);
  EXPECT_FALSE(cache.holds(0, 4));
  EXPECT_EQ(cache.blocks().free(), 5);
}

TEST_F(StateCacheTest, AsksForABlockIfNoneIsFree) {
  StateCache cache = make();
  std::vector<int32_t> others;
  while (cache.blocks().free() > 0) others.push_back(cache.blocks().allocate());
  EXPECT_FALSE(cache.reserve(0, 0, never));
  EXPECT_EQ(cache.block_of(0), CacheBlocks::kNone);
  EXPECT_TRUE(cache.reserve(0, 0, [&] {
    cache.blocks().release(others.back());
    return true;
  }));
  EXPECT_EQ(cache.block_of(0), others.back());
}

TEST_F(StateCacheTest, AModelWithoutStatesNeedsNone) {
  Config config;
  config.layers = 1;
  config.each_layer.resize(1);
  Placement placement;
  placement.layers = {Device::cpu()};
  StateCache cache(config, placement, 2, 1);
  EXPECT_FALSE(cache.is_used());
  EXPECT_TRUE(cache.reserve(0, 5, never));
  EXPECT_TRUE(cache.holds(1, 9));
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace prism::llm
