// Tests how the size of prompt parts follows the measured time.
#include "llm/generate/chunk_size.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "support/seed.h"

namespace prism::llm {
namespace {

TEST(ChunkSize, HasNoLimitByDefault) {
  ChunkSize size;
  EXPECT_EQ(size.rows(512), 512);
  size.learn(512, 10);
  EXPECT_EQ(size.rows(512), 512);
}

TEST(ChunkSize, FindsTheRowsThatFitIntoTheTime) {
  ChunkSize size;
  size.set_limit(0.1);
  int64_t rows = 0;
  for (int i = 0; i < 24; ++i) {
    const int64_t next = size.rows(4096);
    EXPECT_LE(next, std::max<int64_t>(64, 2 * rows));
    EXPECT_TRUE(i > 2 || next == 64 << i) << "grows at once while there is much time";
    rows = next;
    size.learn(rows, 0.01 + static_cast<double>(rows) / 10000);
  }
  EXPECT_EQ(rows, 640);  // 700 take 80% of the time
  // A slower machine: the next batch is already shorter.
  size.learn(rows, 1.0);
  EXPECT_EQ(size.rows(4096), 48);  // 51 in 80% of the time
  // However slow it is, prompts advance.
  size.learn(16, 1000);
  EXPECT_EQ(size.rows(4096), 16);
  EXPECT_EQ(size.rows(5), 5);
}

TEST(ChunkSize, GrowsInFewStepsOnAFastDevice) {
  ChunkSize size;
  size.set_limit(0.1);
  std::vector<int64_t> sizes;
  for (int i = 0; i < 4; ++i) {
    sizes.push_back(size.rows(2048));
    size.learn(sizes.back(), 0.002 + 3e-5 * static_cast<double>(sizes.back()));
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{64, 512, 1024, 2048}));
}

TEST(ChunkSize, SlowBatchesStayWithinTheTimeToo) {
  // A small model on two cores that other programs share.
  std::mt19937 random(test_seed());
  std::uniform_real_distribution<double> slowness(0.7, 1.4);
  ChunkSize size;
  size.set_limit(0.1);
  int above = 0;
  double all_rows = 0, seconds = 0;
  for (int i = 0; i < 2000; ++i) {
    const int64_t rows = size.rows(4096);
    const double took = (0.02 + 0.0018 * static_cast<double>(rows)) * slowness(random);
    above += took > 0.1;
    all_rows += static_cast<double>(rows);
    seconds += took;
    size.learn(rows, took);
  }
  EXPECT_LT(above, 100);
  // 28 rows would fit if every batch were as slow as the slowest.
  EXPECT_GT(all_rows / seconds, 0.9 * 28 / (0.0704 * 1.05));
}

TEST(ChunkSize, BeginsWithFewRowsOnASlowDevice) {
  ChunkSize size;
  size.set_limit(0.1, ChunkSize::kLeast);
  for (int i = 0; i < 20; ++i) {
    const int64_t rows = size.rows(4096);
    EXPECT_LE(0.0019 * static_cast<double>(rows), 0.1) << "step " << i;
    size.learn(rows, 0.0019 * static_cast<double>(rows));
  }
  EXPECT_EQ(size.rows(4096), 40);  // 42 take 80% of the time
}

TEST(ChunkSize, DecodingRowsCountToo) {
  // 64 texts decode beside the prompts, and each row takes a millisecond.
  ChunkSize size;
  size.set_limit(0.1);
  double longest = 0;
  for (int i = 0; i < 50; ++i) {
    const int64_t rows = 64 + size.rows(4096, 64);
    const double seconds = 0.001 * static_cast<double>(rows);
    if (i > 0) longest = std::max(longest, seconds);
    size.learn(rows, seconds);
  }
  EXPECT_LE(longest, 0.1);
  EXPECT_EQ(size.rows(4096, 64), 16) << "80 rows in all";
  EXPECT_EQ(size.rows(4096, 512), 16) << "prompts advance beside any number of texts";
  EXPECT_EQ(size.rows(70, 64), 6);
  EXPECT_EQ(ChunkSize().rows(4096, 64), 4032);
}

TEST(ChunkSize, HasFewSizes) {
  ChunkSize size;
  size.set_limit(0.1);
  std::set<int64_t> seen;
  for (int64_t rows = 1; rows <= 512; ++rows) {
    size.learn(rows, 0.1);
    const int64_t next = size.rows(4096);
    EXPECT_LE(next, std::max<int64_t>(rows, 16));
    seen.insert(next);
  }
  EXPECT_LE(seen.size(), 20u);
}

}  // namespace
}  // namespace prism::llm
