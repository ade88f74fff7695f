// Tests the formatting of numbers, sizes and rates.
#include "base/units.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

TEST(Units, NumbersHaveThreeDigitsAndNoExponent) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(1634.4), "1634");
  EXPECT_EQ(number_text(2.5e9), "2500000000");
  EXPECT_EQ(number_text(98.44), "98.4");
  EXPECT_EQ(number_text(1.634), "1.63");
  EXPECT_EQ(number_text(9.996), "10.0");
  EXPECT_EQ(number_text(99.96), "100");
  EXPECT_EQ(number_text(999.6), "1000");
  EXPECT_EQ(number_text(0.012345), "0.0123");
  EXPECT_EQ(number_text(0.00000812), "0.00000812");
  EXPECT_EQ(number_text(-12.34), "-12.3");
}

TEST(Units, SizesAreBinary) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(1536), "1.50 KiB");
  EXPECT_EQ(size_text(103219200), "98.4 MiB");
  EXPECT_EQ(size_text(3ull << 29), "1.50 GiB");
  EXPECT_EQ(size_text(2048ull << 30), "2048 GiB");
  EXPECT_EQ(size_text(UINT64_MAX), "unknown");
}

TEST(Units, RatesAreDecimal) {
  EXPECT_EQ(rate_text(12.34e9, "B/s"), "12.3 GB/s");
  EXPECT_EQ(rate_text(1.634e12, "FLOP/s"), "1.63 TFLOP/s");
  EXPECT_EQ(rate_text(999.6e6, "B/s"), "1.00 GB/s");
  EXPECT_EQ(rate_text(4270e12, "B/s"), "4270 TB/s");
  EXPECT_EQ(rate_text(7, "B/s"), "7.00 B/s");
}

TEST(Units, CountsHaveSeparators) {
  EXPECT_EQ(exact_count_text(0), "0");
  EXPECT_EQ(exact_count_text(999), "999");
  EXPECT_EQ(exact_count_text(1000), "1,000");
  EXPECT_EQ(exact_count_text(123456789), "123,456,789");
}

}  // namespace
}  // namespace prism
