// Decoding against elements computed by another program, and planes against blocks.
#include "cpu/quantise/dequantise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "base/system/thread_pool.h"
#include "base/types/block_formats.h"
#include "base/types/gpu_block_layout.h"
#include "prism/error.h"
#include "support/paths.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

std::vector<uint8_t> read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// tests/data/make_block_vectors.py generates the file; PRISM_BLOCK_VECTORS names a larger one.
TEST(Dequantise, GivesTheElementsThatNumpyGives) {
  const char* other = std::getenv("PRISM_BLOCK_VECTORS");
  const auto bytes = read_all(other ? other : test::source_dir() / "tests/data/block_vectors.bin");
  size_t at = 0;
  for (int t = 0; t < kBlockTypeCount; ++t) {
    const auto type = static_cast<BlockType>(t);
    const BlockInfo& info = block_info(type);
    uint32_t count;
    ASSERT_LE(at + 4, bytes.size());
    std::memcpy(&count, bytes.data() + at, 4);
    const size_t elements = static_cast<size_t>(count) * info.elements;
    ASSERT_LE(at + 4 + count * info.bytes + 4 * elements, bytes.size());
    std::vector<uint16_t> blocks((count * info.bytes + 1) / 2);  // aligned to 2 bytes
    std::memcpy(blocks.data(), bytes.data() + at + 4, count * info.bytes);
    std::vector<float> expected(elements), found(elements, NAN);
    std::memcpy(expected.data(), bytes.data() + at + 4 + count * info.bytes, 4 * elements);
    dequantise(type, blocks.data(), found.data(), elements);
    for (size_t i = 0; i < elements; ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i]))
          << info.name << " element " << i << ": " << found[i] << ", expected " << expected[i];
    at += 4 + count * info.bytes + 4 * elements;
  }
  EXPECT_EQ(at, bytes.size());
}

class EveryBlockType : public ::testing::TestWithParam<int> {};

TEST_P(EveryBlockType, DecodesAlikeFromBlocksAndFromPlanes) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto type = static_cast<BlockType>(GetParam());
  for (const uint64_t blocks : {1, 5}) {
    const GpuBlockLayout layout = gpu_block_layout(type, 3, blocks * block_info(type).elements);
    std::vector<uint16_t> file(layout.rows * blocks * block_info(type).bytes);
    for (uint16_t& half : file) half = static_cast<uint16_t>(random());
    const uint64_t elements = layout.rows * layout.columns;
    std::vector<float> values(elements, -7), pooled(elements, -7);
    dequantise(type, file.data(), values.data(), elements);
    ThreadPool pool(3);
    dequantise(type, file.data(), pooled.data(), elements, pool);
    std::vector<uint8_t> planes(layout.bytes());
    to_gpu_layout(layout, file.data(), planes.data());
    for (uint64_t i = 0; i < elements; ++i) {
      const float element =
          plane_element(layout, planes.data(), i / layout.columns, i % layout.columns);
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(element) && std::isnan(pooled[i])) << i;
      } else {
        EXPECT_EQ(values[i], element) << i;
        EXPECT_EQ(values[i], pooled[i]) << i;
      }
    }
  }
}

TEST_P(EveryBlockType, RefusesAPartOfABlock) {
  const auto type = static_cast<BlockType>(GetParam());
  float out[1] = {1};
  EXPECT_THROW(dequantise(type, nullptr, out, block_info(type).elements - 1), Error);
  EXPECT_NO_THROW(dequantise(type, nullptr, out, 0));
  EXPECT_EQ(out[0], 1);
}

INSTANTIATE_TEST_SUITE_P(Types, EveryBlockType, ::testing::Range(0, kBlockTypeCount),
                         [](const auto& test) {
                           return block_info(static_cast<BlockType>(test.param)).name;
                         });

}  // namespace
}  // namespace prism::cpu
