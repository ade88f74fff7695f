// Tests that no share of a device's limits is above 1.
#include "ops/bench/op_bench.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

BenchResult result_of(double bytes_rate, double flops_rate = 0, bool is_product = false,
                      BenchLimit kind = BenchLimit::f32, double rotated_bytes = 1e9) {
  BenchResult result;
  result.seconds = 1;
  result.bytes_rate = bytes_rate;
  result.flops_rate = flops_rate;
  result.is_product = is_product;
  result.product_kind = kind;
  result.rotated_bytes = rotated_bytes;
  return result;
}

TEST(OpBench, SharesAreOfTheLimitReachedFirst) {
  DevicePeaks peaks{100, 1000, 2000, 0};
  std::vector<BenchResult> results = {result_of(50), result_of(10, 500, true),
                                      result_of(60, 500, true),
                                      result_of(1, 500, true, BenchLimit::quantised)};
  set_shares(results, peaks);
  EXPECT_EQ(results[0].limit, BenchLimit::bandwidth);
  EXPECT_DOUBLE_EQ(results[0].share, 0.5);
  EXPECT_EQ(results[1].limit, BenchLimit::f32);
  EXPECT_DOUBLE_EQ(results[1].share, 0.5);
  EXPECT_EQ(results[2].limit, BenchLimit::bandwidth);
  EXPECT_DOUBLE_EQ(results[2].share, 0.6);
  EXPECT_EQ(results[3].limit, BenchLimit::f16);  // the rate of quantised products is unknown
  EXPECT_DOUBLE_EQ(results[3].share, 0.25);
}

TEST(OpBench, WhatAnOpReachesIsThePeak) {
  DevicePeaks peaks{100, 1000, 1000, 1000};
  std::vector<BenchResult> results = {result_of(90), result_of(1, 800, true), result_of(120),
                                      result_of(1, 1600, true),
                                      result_of(1, 4000, true, BenchLimit::quantised)};
  set_shares(results, peaks);
  for (const BenchResult& each : results) {
    EXPECT_LE(each.share, 1.0);
    EXPECT_FALSE(each.in_cache);
  }
  EXPECT_DOUBLE_EQ(peaks.bandwidth, 120);
  EXPECT_DOUBLE_EQ(results[0].share, 0.75);
  EXPECT_DOUBLE_EQ(results[1].share, 0.5);
  EXPECT_EQ(results[4].limit, BenchLimit::quantised);
  EXPECT_DOUBLE_EQ(peaks.quantised_rate, 4000);
}

TEST(OpBench, SmallOpsAboveTheMemoryAreInCache) {
  DevicePeaks peaks{100, 1000, 1000, 1000};
  std::vector<BenchResult> results = {result_of(300, 0, false, BenchLimit::f32, 1e6),
                                      result_of(50, 0, false, BenchLimit::f32, 1e6),
                                      result_of(300, 500, true, BenchLimit::f32, 1e6)};
  set_shares(results, peaks);
  EXPECT_TRUE(results[0].in_cache);
  EXPECT_FALSE(results[1].in_cache);
  EXPECT_FALSE(results[2].in_cache);  // arithmetic still limits a product
  EXPECT_EQ(results[2].limit, BenchLimit::f32);
  EXPECT_DOUBLE_EQ(results[2].share, 0.5);
  EXPECT_DOUBLE_EQ(peaks.bandwidth, 100);
}

TEST(OpBench, WhatDidNotRunHasNoShare) {
  DevicePeaks peaks{100, 1000, 1000, 1000};
  std::vector<BenchResult> results = {result_of(500)};
  results[0].problem = "the device was lost";
  set_shares(results, peaks);
  EXPECT_DOUBLE_EQ(results[0].share, 0);
  EXPECT_DOUBLE_EQ(peaks.bandwidth, 100);
}

}  // namespace
}  // namespace prism
