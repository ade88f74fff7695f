// Tests that converting to planes and back restores every byte, and that the layout is as
// documented.
#include "base/types/gpu_block_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/system/thread_pool.h"
#include "base/types/block_formats.h"
#include "prism/error.h"

namespace prism {
namespace {

class Planes : public ::testing::TestWithParam<int> {
 protected:
  BlockType type() const { return static_cast<BlockType>(GetParam()); }
  std::vector<uint8_t> random_blocks(uint64_t rows, uint64_t columns) {
    std::vector<uint8_t> bytes(rows * ElementType(type()).row_bytes(columns));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    return bytes;
  }
  const uint32_t seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
};

TEST_P(Planes, GiveBackTheBytesTheyWereMadeFrom) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ThreadPool pool(3);
  const uint64_t block = block_info(type()).elements;
  for (const uint64_t rows : {0, 1, 7})
    for (const uint64_t blocks : {0, 1, 3, 11}) {
      const GpuBlockLayout layout = gpu_block_layout(type(), rows, blocks * block);
      const auto file = random_blocks(rows, layout.columns);
      std::vector<uint8_t> planes(layout.bytes() + 32, 0xcd), again(file.size() + 32, 0xcd);
      to_gpu_layout(layout, file.data(), planes.data());
      std::vector<uint8_t> pooled(layout.bytes() + 32, 0xcd);
      to_gpu_layout(layout, file.data(), pooled.data(), pool);
      EXPECT_EQ(planes, pooled);
      for (size_t i = layout.bytes(); i < planes.size(); ++i) ASSERT_EQ(planes[i], 0xcd);
      from_gpu_layout(layout, planes.data(), again.data());
      for (size_t i = file.size(); i < again.size(); ++i) ASSERT_EQ(again[i], 0xcd);
      again.resize(file.size());
      EXPECT_EQ(file, again) << rows << " rows of " << layout.columns;
      std::fill(again.begin(), again.end(), uint8_t{0xcd});
      from_gpu_layout(layout, planes.data(), again.data(), pool);
      EXPECT_EQ(file, again);
    }
}

TEST_P(Planes, PadWithZerosAndAlign) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const GpuBlockLayout layout = gpu_block_layout(type(), 3, 5 * block_info(type()).elements);
  EXPECT_EQ(layout.row_bytes % 32, 0u);
  auto file = random_blocks(layout.rows, layout.columns);
  std::fill(file.begin(), file.end(), uint8_t{0xff});
  std::vector<uint8_t> planes(layout.bytes(), 0xcd);
  to_gpu_layout(layout, file.data(), planes.data());
  std::vector<bool> used(layout.row_bytes, false);
  for (const Plane& plane : {layout.quants, layout.high, layout.scales, layout.factors}) {
    EXPECT_EQ(plane.offset % 16, 0u);
    ASSERT_LE(plane.offset + plane.bytes, layout.row_bytes);
    for (uint64_t i = plane.offset; i < plane.offset + plane.bytes; ++i) {
      EXPECT_FALSE(used[i]) << "planes overlap at " << i;
      used[i] = true;
    }
  }
  for (uint64_t r = 0; r < layout.rows; ++r)
    for (uint64_t i = 0; i < layout.row_bytes; ++i)
      if (!used[i]) {
        ASSERT_EQ(planes[r * layout.row_bytes + i], 0) << "row " << r << " byte " << i;
      }
}

TEST_P(Planes, GrowByNoMoreThanStated) {
  const GpuBlockLayout layout = gpu_block_layout(type(), 1, 1u << 20);
  const double file = static_cast<double>(ElementType(type()).row_bytes(layout.columns));
  const double grown = static_cast<double>(layout.row_bytes) / file - 1;
  const double stated =
      type() == BlockType::q3_k ? 4.0 / 110 : (type() == BlockType::iq4_xs ? 2.0 / 136 : 0.0);
  EXPECT_NEAR(grown, stated, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Types, Planes, ::testing::Range(0, kBlockTypeCount), [](const auto& test) {
  return block_info(static_cast<BlockType>(test.param)).name;
});

TEST(PlaneLayouts, RefuseRowsThatAreNoMultipleOfTheBlock) {
  EXPECT_THROW(gpu_block_layout(BlockType::q4_k, 2, 288), Error);
  EXPECT_THROW(gpu_block_layout(BlockType::q8_0, 2, 33), Error);
  EXPECT_NO_THROW(gpu_block_layout(BlockType::q8_0, 2, 288));
}

}  // namespace
}  // namespace prism
