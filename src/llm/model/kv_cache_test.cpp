// Tests the blocks and tables of the KV cache: reservation, sharing, copies, windows.
#include "llm/model/kv_cache.h"

#include <numeric>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism::llm {
namespace {

using Table = std::vector<int32_t>;

TEST(CacheBlocks, CountUses) {
  CacheBlocks blocks(3);
  EXPECT_EQ(blocks.free(), 3);
  const int32_t a = blocks.allocate(), b = blocks.allocate();
  EXPECT_NE(a, b);
  EXPECT_NE(a, CacheBlocks::kNone);
  blocks.share(a);
  blocks.release(a);
  EXPECT_EQ(blocks.uses(a), 1);
  EXPECT_EQ(blocks.free(), 1);
  blocks.release(a);
  EXPECT_EQ(blocks.free(), 2);
  blocks.release(CacheBlocks::kNone);
  blocks.share(CacheBlocks::kNone);
  EXPECT_EQ(blocks.free(), 2);
  EXPECT_NE(blocks.allocate(), CacheBlocks::kNone);
  EXPECT_NE(blocks.allocate(), CacheBlocks::kNone);
  EXPECT_EQ(blocks.allocate(), CacheBlocks::kNone);
}

class KvCacheTest : public testing::Test {
 protected:
  // Two layers with heads of four elements; window: of the first.
  KvCache make(const CacheSize& size, int64_t window = 0) {
    Config config;
    config.layers = 2;
    config.window = window;
    config.each_layer = {{.kv_heads = 1, .head_dim = 4, .value_dim = 4, .windowed = true},
                         {.kv_heads = 1, .head_dim = 4, .value_dim = 4}};
    Placement placement;
    placement.layers = {Device::cpu(), Device::cpu()};
    placement.kv_type = DType::f32;
    return {config, placement, size};
  }
  static Table table(const KvCache& cache, size_t group, int32_t slot) {
    const std::span<const int32_t> entries = cache.table(group, slot);
    return {entries.begin(), entries.end()};
  }
};

TEST_F(KvCacheTest, BlocksFollowTheContext) {
  EXPECT_EQ(cache_block(4096), 128);
  EXPECT_EQ(cache_block(80), 128);
  EXPECT_EQ(cache_block(5), 8);
  EXPECT_EQ(cached_positions(1), 2);
  EXPECT_EQ(cached_positions(129), 3 * 128);
  const KvCache cache = make({.slots = 3, .positions = 130});
  EXPECT_EQ(cache.keys(0).shape(), (Shape{7, 128, 1, 4}));
  EXPECT_EQ(make({.slots = 3, .positions = 130, .shared = 10}).blocks(0).count(), 2);
  EXPECT_EQ(make({.slots = 3, .positions = 130, .shared = 300}).blocks(0).count(), 3);
}

TEST_F(KvCacheTest, ReservesWhatIsMissing) {
  KvCache cache = make({.slots = 2, .positions = 12, .shared = 16, .block = 4});
  EXPECT_EQ(cache.groups(), 1u);
  EXPECT_TRUE(cache.reserve(1, 0, 5));
  const Table two = table(cache, 0, 1);
  EXPECT_EQ(two.size(), 3u);
  EXPECT_NE(two[1], CacheBlocks::kNone);
  EXPECT_EQ(two[2], CacheBlocks::kNone);
  EXPECT_EQ(cache.row(0, 1, 5), two[1] * 4 + 1);
  EXPECT_TRUE(cache.reserve(1, 5, 8));  // the same blocks
  EXPECT_EQ(table(cache, 0, 1), two);
  EXPECT_FALSE(cache.reserve(0, 0, 9));  // three blocks, two are free
  EXPECT_EQ(table(cache, 0, 0), Table(3, CacheBlocks::kNone));
  EXPECT_TRUE(cache.reserve(0, 0, 8));
  EXPECT_FALSE(cache.reserve(1, 8, 9));
  cache.truncate(0, 4);
  EXPECT_EQ(cache.blocks(0).free(), 1);
  EXPECT_TRUE(cache.reserve(1, 8, 9));
  cache.truncate(1, 0);
  EXPECT_EQ(cache.blocks(0).free(), 3);
}

TEST_F(KvCacheTest, AsksForBlocksToBeFreed) {
  KvCache cache = make({.slots = 2, .positions = 8, .shared = 8, .block = 4});
  EXPECT_TRUE(cache.reserve(0, 0, 8));
  int asked = 0;
  cache.reclaim = [&](size_t group, int32_t) {
    EXPECT_EQ(group, 0u);
    if (++asked > 1) return false;
    cache.truncate(0, 4);
    return true;
  };
  EXPECT_TRUE(cache.reserve(1, 0, 3));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(cache.reserve(1, 3, 8));
  EXPECT_EQ(asked, 2);
}

// A shared block is copied when a text writes behind its first positions, replaced if it writes all
// of it, and left alone if it only reads.
TEST_F(KvCacheTest, CopiesSharedBlocksWhenWritten) {
  KvCache cache = make({.slots = 2, .positions = 16, .block = 4});
  EXPECT_TRUE(cache.reserve(0, 0, 7));
  const auto floats = [&](const Tensor& tensor) {
    return reinterpret_cast<float*>(tensor.node()->storage[0]->host.get());
  };
  for (int64_t layer = 0; layer < 2; ++layer)
    for (const Tensor* each : {&cache.keys(layer), &cache.values(layer)})
      std::iota(floats(*each), floats(*each) + each->elements(), static_cast<float>(layer));
  const Table first = table(cache, 0, 0);
  cache.adopt(1, std::vector<Table>{{first[0], first[1]}}, CacheBlocks::kNone, 0);
  EXPECT_EQ(cache.blocks(0).uses(first[0]), 2);
  EXPECT_TRUE(cache.reserve(1, 6, 9));
  const Table second = table(cache, 0, 1);
  EXPECT_EQ(second[0], first[0]);
  EXPECT_NE(second[1], first[1]);
  EXPECT_EQ(cache.blocks(0).uses(first[1]), 1);
  EXPECT_EQ(table(cache, 0, 0), first);
  for (int64_t layer = 0; layer < 2; ++layer)
    for (const Tensor* each : {&cache.keys(layer), &cache.values(layer)})
      EXPECT_TRUE(std::equal(floats(*each) + first[1] * 16, floats(*each) + first[1] * 16 + 16,
                             floats(*each) + second[1] * 16));
  EXPECT_TRUE(cache.reserve(1, 0, 9));  // rewrites all of the first
  EXPECT_NE(table(cache, 0, 1)[0], first[0]);
  EXPECT_EQ(cache.blocks(0).uses(first[0]), 1);
}

TEST_F(KvCacheTest, WindowedLayersForgetWhatNoQuerySees) {
  KvCache cache = make({.slots = 2, .positions = 64, .batch_rows = 8, .block = 4}, 6);
  ASSERT_EQ(cache.groups(), 2u);
  const size_t windowed = cache.group_of(0), full = cache.group_of(1);
  EXPECT_NE(windowed, full);
  EXPECT_EQ(cache.window(windowed), 6);
  EXPECT_LT(cache.blocks(windowed).count(), cache.blocks(full).count());
  for (int64_t at = 0; at < 64; at += 8) {
    ASSERT_TRUE(cache.reserve(0, at, at + 8)) << at;
    ASSERT_TRUE(cache.reserve(1, at, at + 8)) << at;
    for (int64_t position = std::max<int64_t>(0, at - 5); position < at + 8; ++position)
      EXPECT_NE(cache.row(windowed, 0, position) / 4, CacheBlocks::kNone) << at;
  }
  EXPECT_EQ(table(cache, windowed, 0)[11], CacheBlocks::kNone);  // positions 44 to 47
  EXPECT_NE(table(cache, full, 0)[11], CacheBlocks::kNone);
  EXPECT_TRUE(cache.holds(0, 64));
  EXPECT_TRUE(cache.holds(0, 57));
  EXPECT_FALSE(cache.holds(0, 50));
  EXPECT_TRUE(cache.holds(0, 0));
  // A window that is never left needs no group of its own.
  EXPECT_EQ(make({.slots = 1, .positions = 64}, 64).groups(), 1u);
}

// Two layers that compress 4 and 16 positions to a key, with a window, and one that does not.
TEST_F(KvCacheTest, CompressedKeysAreOfFurtherLayers) {
  Config config;
  config.layers = 3;
  config.window = 5;
  config.least_kept = 8;
  config.each_layer.assign(
      3, {.kv_heads = 1, .head_dim = 4, .value_dim = 4, .beside_key = 0, .windowed = true});
  config.each_layer[0].compression = 4;
  config.each_layer[0].indexer = 2;
  config.each_layer[0].beside_key = 24;
  config.each_layer[2].compression = 16;
  Placement placement;
  placement.layers.assign(3, Device::cpu());
  placement.kv_type = DType::f32;
  const KvCache cache(config, placement,
                      {.slots = 2, .positions = 64, .batch_rows = 8, .block = 8});
  ASSERT_EQ(cache.layers(), 5u);
  EXPECT_EQ(cache.compressed_of(0), 3);
  EXPECT_EQ(cache.compressed_of(1), -1);
  EXPECT_EQ(cache.compressed_of(2), 4);
  EXPECT_EQ(cache.window(cache.group_of(0)), 8);  // what keys are made from is kept too
  EXPECT_EQ(cache.window(cache.group_of(3)), 0);
  EXPECT_EQ(cache.group_of(3), cache.group_of(4));
  EXPECT_EQ(cache.values(0).shape().text(), Shape({11, 8, 1, 24}).text());
  EXPECT_FALSE(cache.values(1));
  EXPECT_FALSE(cache.indexer(0));
  EXPECT_EQ(cache.keys(3).shape(), Shape({17, 2, 1, 4}));
  EXPECT_EQ(cache.indexer(3).shape(), Shape({17, 2, 1, 2}));
  EXPECT_EQ(cache.keys(4).shape(), Shape({17, 1, 1, 4}));
  EXPECT_EQ(cache.block_bytes(3), 4u * 2 * (4 + 2));
  // No text of 12 positions has a key of 16.
  EXPECT_EQ(KvCache(config, placement, {.positions = 12}).compressed_of(2), -1);
  EXPECT_THROW(KvCache(config, placement, {.positions = 12, .block = 2}), Error);
}

TEST_F(KvCacheTest, RefusesWhatDoesNotFit) {
  Config config;
  config.layers = 1;
  config.each_layer = {{.kv_heads = 1, .head_dim = 8, .value_dim = 8}};
  Placement placement;
  placement.layers = {Device::cpu()};
  placement.kv_type = BlockType::q8_0;
  EXPECT_THROW(KvCache(config, placement, {.positions = 8}), Error);
  placement.kv_type = BlockType::q4_0;
  EXPECT_THROW(KvCache(config, placement, {.positions = 8}), Error);
}

}  // namespace
}  // namespace prism::llm
