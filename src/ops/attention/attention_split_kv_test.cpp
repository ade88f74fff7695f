// Tests which decode tiles are chosen for a device, and where splits are merged.
#include "ops/attention/attention_split_kv.h"

#include <gtest/gtest.h>

namespace prism::ops {
namespace {

// Merging in one launch needs fences; with overlapping launches it only pays for one row of f16.
TEST(DecodeTiles, MergeWhereItPays) {
  ir::Capabilities device;
  for (const bool fences : {false, true})
    for (const bool overlaps : {false, true})
      for (const uint32_t group : {1u, 4u})
        for (const ElementType cache : {ElementType(DType::f16), ElementType(BlockType::q8_0)}) {
          device.device_fence = fences;
          device.dependent_launch = overlaps;
          const AttentionOptions options{.head_dim = 128, .group = group, .cache = cache};
          const bool one_plain = group == 1 && !cache.is_block();
          EXPECT_EQ(suits_merges(options, decode_tile(options, 1), 16, device),
                    fences && (!overlaps || one_plain))
              << fences << overlaps << group << cache.name();
        }
}

// Fragments are used if the device supports them, in tiles that fit its shared memory.
TEST(DecodeTiles, FitTheDevice) {
  ir::Capabilities device;
  device.async_copy = device.fragment_layout = true;
  device.subgroup_size = 32;
  device.fragments = {{}};
  for (const uint32_t kilobytes : {227u, 99u, 64u, 32u})
    for (const uint32_t dim : {64u, 128u, 256u, 512u})
      for (const uint32_t group : {1u, 4u, 16u})
        for (const ElementType cache : {ElementType(DType::f16), ElementType(DType::f32),
                                        ElementType(DType::bf16), ElementType(BlockType::q8_0)}) {
          const AttentionOptions options{.head_dim = dim, .group = group, .cache = cache};
          device.shared_bytes = kilobytes << 10;
          const DecodeTile tile = decode_tile_for(options, 1, device);
          const bool rounds = cache == ElementType(DType::f16) || cache.is_block();
          if (kilobytes == 227) {
            EXPECT_EQ(tile.stages > 0, rounds && dim <= 256 && group > 1);
          }
          if (tile.stages > 0) {
            EXPECT_LE(attention_decode(options, tile).shared_bytes(), device.shared_bytes);
          }
          ir::Capabilities plain = device;
          plain.async_copy = false;
          EXPECT_EQ(decode_tile_for(options, 1, plain).stages, 0u);
        }
}

}  // namespace
}  // namespace prism::ops
