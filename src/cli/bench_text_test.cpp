// Tests the texts of shares and the advice of the benches.
#include "cli/bench_text.h"

#include <gtest/gtest.h>

namespace prism::cli {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(BenchText, Peaks) {
  EXPECT_EQ(peaks_text({12.34e9, 163.4e9, 1.634e12, 0}),
            "measured peaks: 12.3 GB/s, f32 products 163 GFLOP/s, f16 1.63 TFLOP/s");
}

TEST(BenchText, SharesOfOps) {
  BenchResult result;
  result.share = 0.624;
  EXPECT_EQ(share_text(result), "62% of bandwidth");
  result.in_cache = true;
  EXPECT_EQ(share_text(result), "in cache");
}

TEST(BenchText, SharesOfTokens) {
  EXPECT_EQ(token_share_text(55, 110, BenchLimit::bandwidth), "50% of 110 by bandwidth");
  EXPECT_EQ(token_share_text(1630, 815, BenchLimit::bandwidth), "in cache; memory allows 815");
  EXPECT_EQ(token_share_text(120, 110, BenchLimit::f32),
            "more than the measured 110 by f32 product");
}

// Only a memory-bound model gains from smaller weights.
TEST(BenchText, AdviceFollowsFromTheShare) {
  EXPECT_TRUE(has(cpu_decode_advice(0.9),
                  "90% of what the memory allows; a smaller quantisation "
                  "writes faster"));
  EXPECT_TRUE(has(cpu_decode_advice(0.3), "does not limit"));
  EXPECT_FALSE(has(cpu_decode_advice(0.3), "writes faster"));
  EXPECT_TRUE(has(cpu_decode_advice(1.4), "caches"));
  EXPECT_FALSE(has(cpu_decode_advice(1.4), "%"));
}

}  // namespace
}  // namespace prism::cli
