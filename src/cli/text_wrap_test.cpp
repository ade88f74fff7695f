// Tests where help texts are wrapped and how they are indented.
#include "cli/text_wrap.h"

#include <gtest/gtest.h>

namespace prism::cli {
namespace {

TEST(TextWrap, BreaksAtSpaces) {
  EXPECT_EQ(wrapped("one two three four", 9), "one two\nthree\nfour");
  EXPECT_EQ(wrapped("one two", 7), "one two");
  EXPECT_EQ(wrapped("overlong a", 4), "overlong\na");
  EXPECT_EQ(wrapped("größe über", 10), "größe über") << "characters count, not bytes";
}

TEST(TextWrap, IndentsAllLinesButTheFirst) {
  EXPECT_EQ(wrapped("one two three", 10, 4), "one\n    two\n    three");
}

TEST(TextWrap, KeepsLinesAndExamples) {
  EXPECT_EQ(wrapped("Example:\n  prism run --a --b", 10), "Example:\n  prism run --a --b");
  EXPECT_EQ(wrapped("a b\n\nc", 3), "a b\n\nc");
}

}  // namespace
}  // namespace prism::cli
