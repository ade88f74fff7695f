// Tests that stop strings are found however the text is split, and that no part of one is shown.
#include "llm/generate/stop_filter.h"
#include "support/seed.h"

#include <gtest/gtest.h>

#include <random>

namespace prism::llm {
namespace {

TEST(StopFilter, HoldsBackWhatMayStillMatch) {
  StopFilter filter({"STOP", "\n\n"});
  EXPECT_EQ(filter.put("a ST"), "a ");
  EXPECT_EQ(filter.put("OR"), "STOR");
  EXPECT_EQ(filter.put("b\n"), "b");
  EXPECT_EQ(filter.put("c"), "\nc");
  EXPECT_EQ(filter.put("dSTOPe"), "d");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.found(), "STOP");
  EXPECT_EQ(filter.put("more"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopFilter, GivesTheRestAtTheEnd) {
  StopFilter filter({"STOP"});
  EXPECT_EQ(filter.put("xSTO"), "x");
  EXPECT_EQ(filter.finish(), "STO");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, EveryCutGivesTheSame) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const auto word = [&](size_t most) {
      std::string text(1 + random() % most, 'a');
      for (char& c : text) c = static_cast<char>('a' + random() % 2);
      return text;
    };
    const std::string text = word(30);
    const std::vector<std::string> stops = {word(6), word(6)};
    // One character at a time: find the first complete stop string and the text before it.
    size_t length = text.size();
    std::string before = text;
    for (size_t end = 1; end <= text.size() && length == text.size(); ++end)
      for (const std::string& stop : stops)
        if (std::string_view(text).substr(0, end).ends_with(stop) &&
            end - stop.size() < before.size())
          before = text.substr(0, end - stop.size()), length = end;
    if (length == text.size() && !std::string_view(text).ends_with(stops[0]) &&
        !std::string_view(text).ends_with(stops[1]))
      before = text;
    StopFilter filter(stops);
    std::string shown;
    for (const char c : text) shown += filter.put(std::string_view(&c, 1));
    shown += filter.finish();
    EXPECT_EQ(shown, before) << text << " " << stops[0] << " " << stops[1];
  }
}

}  // namespace
}  // namespace prism::llm
