// Tests the comparison of versions, and the parsers of header lines, ranges and numbers.
#include "llm/store/content_version.h"

#include <gtest/gtest.h>

#include "llm/store/http_headers.h"

namespace prism::llm {
namespace {

HttpAnswer parsed(std::initializer_list<const char*> lines) {
  HttpHeaders headers;
  for (const char* line : lines) EXPECT_TRUE(headers.line(line));
  return headers.answer();
}

TEST(ContentVersion, RangesAreReadStrictly) {
  const auto range = parse_content_range("bytes 100-199/5000");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 100u);
  EXPECT_EQ(range->last, 199u);
  EXPECT_EQ(range->file_bytes, 5000u);
  EXPECT_EQ(parse_content_range("bytes 0-0/*")->file_bytes, std::nullopt);
  for (const char* wrong :
       {"", "bytes", "bytes 1-2", "bytes */5", "bytes 2-1/5", "bytes 1-5/5", "bytes -1-2/5",
        "bytes 1-2/x", "bytes 1 -2/5", "lines 1-2/5", "bytes 1-18446744073709551616/*",
        "bytes 1-18446744073709551615/*", "bytes 1-2/5, bytes 1-2/5", "bytes 1/2-5"})
    EXPECT_FALSE(parse_content_range(wrong)) << wrong;
  for (const char* wrong : {"", "-1", "+1", " 1", "1 ", "0x10", "1, 2", "18446744073709551616"})
    EXPECT_FALSE(parse_bytes(wrong)) << wrong;
}

TEST(ContentVersion, ContinuesOnlyTheSameVersion) {
  const ContentVersion kept{"\"a\"", "Mon", 100, ""};
  EXPECT_TRUE(kept.is_continued_by(kept));
  EXPECT_TRUE(kept.is_continued_by({"\"a\"", "", {}, ""})) << "the rest may be left out";
  EXPECT_FALSE(kept.is_continued_by({"", "Mon", 100, ""})) << "a strong ETag may not";
  EXPECT_FALSE(kept.is_continued_by({"\"b\"", "Mon", 100, ""}));
  EXPECT_FALSE(kept.is_continued_by({"W/\"a\"", "Mon", 100, ""}));
  EXPECT_FALSE(kept.is_continued_by({"\"a\"", "Tue", 100, ""}));
  EXPECT_FALSE(kept.is_continued_by({"\"a\"", "Mon", 101, ""}));
  const ContentVersion dated{"W/\"a\"", "Mon", 100, ""};
  EXPECT_EQ(dated.validator(), "Mon");
  EXPECT_FALSE(dated.is_continued_by({"W/\"a\"", "", 100, ""}));
  const ContentVersion nameless{"", "", 100, ""};
  EXPECT_FALSE(nameless.is_continued_by(nameless));
}

TEST(ContentVersion, IsKeptAsText) {
  const ContentVersion version{"\"a\"", "Mon", 100, std::string(64, 'e')};
  const ContentVersion read = ContentVersion::parse(version.text());
  EXPECT_EQ(read.etag, version.etag);
  EXPECT_EQ(read.last_modified, version.last_modified);
  EXPECT_EQ(read.bytes, version.bytes);
  EXPECT_EQ(read.linked_sha256, version.linked_sha256);
  EXPECT_EQ(ContentVersion::parse("").validator(), "");
}

TEST(ContentVersion, AnETagWithControlCharactersIsNone) {
  const HttpAnswer answer = parsed({"HTTP/1.1 200 OK", "ETag: \"a\"\rX-Evil: 1", ""});
  EXPECT_EQ(version_of(answer).etag, "");
}

TEST(HttpHeaders, RepeatedOnesAreJoined) {
  const HttpAnswer answer = parsed({"HTTP/1.1 200 OK", "Content-Length: 5", "content-length: 6",
                                    "ETag: \"a\"", "ETag: \"a\"", ""});
  EXPECT_EQ(header(answer, "content-length"), "5, 6");
  EXPECT_EQ(version_of(answer).bytes, std::nullopt);
  EXPECT_EQ(version_of(answer).etag, "\"a\"");
}

TEST(HttpHeaders, TheFirstRedirectNamesTheChecksum) {
  const std::string right(64, 'a'), wrong(64, 'b');
  const HttpAnswer answer =
      parsed({"HTTP/1.1 302 Found", ("X-Linked-Etag: " + right).c_str(), "Location: /b", "",
              "HTTP/1.1 302 Found", ("X-Linked-Etag: " + wrong).c_str(), "Location: /c", "",
              "HTTP/1.1 200 OK", ("X-Linked-Etag: " + wrong).c_str(), ""});
  EXPECT_EQ(version_of(answer).linked_sha256, right);
  EXPECT_EQ(version_of(parsed({"HTTP/1.1 200 OK", ("X-Linked-Etag: " + wrong).c_str(), ""}))
                .linked_sha256,
            "")
      << "the server of the content does not confirm itself";
}

TEST(HttpHeaders, TooManyAreRefused) {
  HttpHeaders headers;
  EXPECT_TRUE(headers.line("HTTP/1.1 200 OK\r\n"));
  const std::string line = "X: " + std::string(1000, 'x');
  int lines = 0;
  while (headers.line(line)) ASSERT_LT(++lines, 1000);
  EXPECT_FALSE(headers.is_final());
  EXPECT_NE(headers.answer().problem.find("256 KiB of headers"), std::string::npos);
}

}  // namespace
}  // namespace prism::llm
