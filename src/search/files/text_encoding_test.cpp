// Tests that texts of older encodings become UTF-8.
#include "search/files/text_encoding.h"

#include <gtest/gtest.h>

#include "search/files/file_content.h"

namespace prism::search {
namespace {

using namespace std::string_literals;

TEST(TextEncoding, WindowsAndUtf16) {
  EXPECT_EQ(as_utf8("K\xe4"
                    "fer, \x80 5 \x93quoted\x94, \x81"),
            "Käfer, € 5 “quoted”, \ufffd");
  EXPECT_EQ(as_utf8("Käfer und K\xe4"
                    "fer"),
            "Käfer und Käfer");
  EXPECT_EQ(as_utf8("\xef\xbb\xbf"
                    "a"),
            "a");
  EXPECT_EQ(as_utf8("cut \xc3"), "cut Ã");
  EXPECT_EQ(as_utf8("\xff\xfeK\0\xe4\0\x3d\xd8\x00\xde\n\0"s), "Kä😀\n");
  EXPECT_EQ(as_utf8("\xfe\xff\0K\0\xe4\xd8\x3d\xde\x00\0\n"s), "Kä😀\n");
  EXPECT_EQ(as_utf8("\xff\xfe\x3d\xd8K\0\x00\xdeZ"s), "\ufffdK\ufffd");  // halves, an odd byte
  EXPECT_EQ(as_utf8("\xff\xfe"), "");
  EXPECT_EQ(as_utf8(""), "");
}

TEST(TextEncoding, FilesOfOlderEncodingsAreText) {
  EXPECT_EQ(content_of("Der K\xe4"
                       "fer tr\xe4gt einen Hut.\r\n")
                .text,
            "Der Käfer trägt einen Hut.\n");
  EXPECT_EQ(content_of("\xff\xfe"
                       "a\0\r\0\n\0"s)
                .text,
            "a\n");
  EXPECT_TRUE(content_of("\x01\xff\0\xfe\x80"s).unsearchable);
}

}  // namespace
}  // namespace prism::search
