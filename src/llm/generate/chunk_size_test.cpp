// Tests how the size of prompt parts follows the measured time.
#include "llm/generate/chunk_size.h"

#include <set>

#include <gtest/gtest.h>

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
  for (int i = 0; i < 12; ++i) {
    const int64_t next = size.rows(4096);
    EXPECT_LE(next, std::max<int64_t>(64, 2 * rows));
    rows = next;
    size.learn(rows, 0.01 + static_cast<double>(rows) / 8000);
  }
  EXPECT_EQ(rows, 640);  // 720 would fit
  // A slower machine: the next batch is already shorter.
  size.learn(rows, 1.0);
  EXPECT_EQ(size.rows(4096), 64);
  // However slow it is, prompts advance.
  size.learn(16, 1000);
  EXPECT_EQ(size.rows(4096), 16);
  EXPECT_EQ(size.rows(5), 5);
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
  EXPECT_LE(seen.size(), 16u);
}

}  // namespace
}  // namespace prism::llm
