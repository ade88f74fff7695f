// Tests that converting to planes and back restores every byte, and that the layout is as
// documented.
#include "base/types/gpu_block_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "base/system/thread_pool.h"
#include "base/types/block_formats.h"
#include "prism/error.h"
#include "support/seed.h"

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
  const uint32_t seed_ = test_seed();
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
      if (type() == BlockType::tq1_0) continue;  // not all bytes come back: see the test below
      EXPECT_EQ(file, again) << rows << " rows of " << layout.columns;
      std::fill(again.begin(), again.end(), uint8_t{0xcd});
      from_gpu_layout(layout, planes.data(), again.data(), pool);
      EXPECT_EQ(file, again);
    }
}

TEST(PlanesOfTernaryBytes, GiveBackTheElements) {
  const uint64_t columns = 256 * 16;
  const GpuBlockLayout layout = gpu_block_layout(BlockType::tq1_0, 1, columns);
  std::vector<uint8_t> file(16 * 54), planes(layout.bytes()), again(file.size());
  for (size_t i = 0; i < file.size(); ++i) file[i] = static_cast<uint8_t>(i);  // each byte value
  to_gpu_layout(layout, file.data(), planes.data());
  from_gpu_layout(layout, planes.data(), again.data());
  std::vector<uint8_t> planes_again(layout.bytes());
  to_gpu_layout(layout, again.data(), planes_again.data());
  EXPECT_EQ(planes, planes_again);
  // Only few of the values of a byte are no rounded fractions.
  size_t changed = 0;
  for (size_t i = 0; i < file.size(); ++i) changed += file[i] != again[i];
  EXPECT_LT(changed, file.size() / 8);
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
  const std::map<BlockType, double> bytes = {// more than in the file, per 256 elements
                                             {BlockType::q3_k, 4},     {BlockType::iq4_xs, 2},
                                             {BlockType::iq1_s, 24},   {BlockType::iq1_m, 58},
                                             {BlockType::iq2_xxs, 40}, {BlockType::iq2_xs, 40},
                                             {BlockType::iq2_s, 32},   {BlockType::iq3_xxs, 40},
                                             {BlockType::iq3_s, 28},   {BlockType::tq1_0, 12}};
  const auto stated = bytes.find(type());
  EXPECT_NEAR(grown, stated == bytes.end() ? 0 : stated->second / block_info(type()).bytes, 1e-5);
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
