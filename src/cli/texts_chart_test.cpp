// Tests the numbers of texts that a bench reads, and the chart of its curves.
#include "cli/texts_chart.h"

#include <gtest/gtest.h>

#include "prism/error.h"

namespace prism::cli {
namespace {

TEST(TextsChart, ReadsNumbersOfTexts) {
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(text_counts({}), Counts{});
  EXPECT_EQ(text_counts({"3"}), Counts{3});
  EXPECT_EQ(text_counts({"1", "2", "4", "...", "64"}), (Counts{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(text_counts({"1", "3", "...", "20", "21"}), (Counts{1, 3, 9, 20, 21}));
  using Words = std::vector<std::string>;
  for (const Words& wrong : {Words{"0"}, Words{"-1"}, Words{"two"}, Words{"2x"}, Words{""},
                             Words{"1", "...", "4"}, Words{"1", "2", "..."}, Words{"99999"},
                             Words{"4", "2", "...", "9"}, Words{"1", "2", "...", "...", "8"}})
    EXPECT_THROW(text_counts(wrong), Error) << wrong.back();
}

TEST(TextsChart, DrawsACurveForEachDevice) {
  const std::string svg =
      texts_chart({"a < b", "today"},
                  {{"cuda:0", {{1, 654.0}, {2, 909.0}, {64, 5388.0}}}, {"cpu:0", {{1, 9.5}}}});
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find("64 texts: 5388.0 tokens/s"), std::string::npos);
  EXPECT_NE(svg.find(">cpu:0</text>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(texts_chart({"one", ""}, {{"cpu:0", {{4, 3.0}}}}).find("4 texts: 3.0"),
            std::string::npos);
}

}  // namespace
}  // namespace prism::cli
