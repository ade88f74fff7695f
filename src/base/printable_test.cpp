// Tests that no character of a shown text can control a terminal.
#include "base/printable.h"

#include <gtest/gtest.h>

#include <string>

#include "base/utf8.h"

namespace prism {
namespace {

TEST(Printable, OrdinaryTextIsUnchanged) {
  for (const char* text :
       {"", "Qwen 2.5 (0.5B)", "C:\\models", "Größe 漢字 🙂 👩‍👩‍👧"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ControlCharactersAreVisible) {
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\a"), "\\u001b[2J\\u001b]0;title\\u0007");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(printable("\x7f\r\b"), "\\u007f\\u000d\\u0008");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m")
      << "C1: the control sequence introducer";
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gguf"),
            "\\u202egguf")
      << "right-to-left override";
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028") << "line separator";
}

TEST(Printable, InvalidBytesAreVisible) {
  EXPECT_EQ(printable("a\x9b"
                      "b\xff"),
            "a\\x9bb\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut off";
}

TEST(Printable, NewlinesAreKeptOnlyInBlocks) {
  EXPECT_EQ(printable("a\n\tb"), "a\\n\\tb");
  EXPECT_EQ(printable("a\n\tb", Lines::kept), "a\n\tb");
  EXPECT_EQ(printable("a\r\nb", Lines::kept), "a\\u000d\nb");
}

TEST(Printable, NoCodePointLeavesAControlCharacter) {
  for (uint32_t code = 0; code < 0x3000; ++code) {
    std::string text;
    append_utf8(code, &text);
    for (const char c : printable(text)) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << code;
      EXPECT_FALSE(code >= 0x80 && code < 0xa0 && static_cast<unsigned char>(c) >= 0x80) << code;
    }
  }
}

}  // namespace
}  // namespace prism
