// Tests the text of a transfer's progress.
#include "cli/model_text.h"

#include <gtest/gtest.h>

namespace prism::cli {
namespace {

TEST(TransferText, ShowsShareSpeedAndTimeLeft) {
  const std::string text =
      transfer_text("model.gguf", {.done = 50 << 20, .all = 100 << 20, .seconds = 5});
  EXPECT_EQ(text, "model.gguf [#####.....]  50% of 100 MiB, 10.5 MB/s, 5 s left");
  EXPECT_EQ(transfer_text("m", {.done = 10, .all = 10, .seconds = 1}),
            "m [##########] 100% of 10 bytes, 10.0 B/s");
}

TEST(TransferText, BytesFromBeforeDoNotCountAsSpeed) {
  const std::string text =
      transfer_text("m", {.done = 60 << 20, .all = 100 << 20, .seconds = 2, .first = 40 << 20});
  EXPECT_NE(text.find("10.5 MB/s, 4 s left"), std::string::npos) << text;
}

TEST(TransferText, UnknownSizesHaveNoBar) {
  EXPECT_EQ(transfer_text("m", {.done = 1 << 20, .seconds = 2}), "m 1.00 MiB, 524 KB/s");
}

TEST(TransferText, FitsATerminal) {
  const std::string text =
      transfer_text("A-Model-With-A-Very-Long-Name-Q4_K_M.gguf",
                    {.done = uint64_t{1} << 30, .all = uint64_t{700} << 30, .seconds = 9000});
  EXPECT_LE(text.size(), 79u) << text;
  EXPECT_NE(text.find("4_K_M.gguf ["), std::string::npos) << text;
}

TEST(PromptText, ShowsShareAndTimeLeft) {
  EXPECT_EQ(prompt_text({.tokens = 6120, .reused = 0, .read = 0, .seconds = 0}),
            "reading the prompt: 0% of 6,120 tokens");
  // What was in the cache says nothing about the speed.
  EXPECT_EQ(prompt_text({.tokens = 6120, .reused = 2120, .read = 4120, .seconds = 10}),
            "reading the prompt: 67% of 6,120 tokens, 10 s left");
}

TEST(DurationText, UsesTheLargestUnit) {
  EXPECT_EQ(duration_text(3.4), "3 s");
  EXPECT_EQ(duration_text(240), "4 min");
  EXPECT_EQ(duration_text(7500), "2 h 5 min");
  EXPECT_EQ(duration_text(108000), "30 h");
}

}  // namespace
}  // namespace prism::cli
