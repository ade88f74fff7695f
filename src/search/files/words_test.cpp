#include "search/files/words.h"

#include <gtest/gtest.h>

namespace prism::search {
namespace {

std::string words(const std::string& text) {
  std::string all;
  each_word(text, [&](const std::string& word, size_t begin, size_t end) {
    EXPECT_LT(begin, end);
    all += (all.empty() ? "" : " ") + word;
  });
  return all;
}

TEST(Words, SplitsIdentifiers) {
  EXPECT_EQ(words("parseHTTPHeader"), "parsehttpheader pars http header");
  EXPECT_EQ(words("snake_case_name"), "snakecasenam snak cas nam");
  EXPECT_EQ(words("utf8"), "utf8 utf 8");
  EXPECT_EQ(words("_private"), "privat privat");
  EXPECT_EQ(words("a+b"), "a b");
  EXPECT_EQ(words("__"), "");
}

TEST(Words, FoldsUnicode) {
  EXPECT_EQ(words("\xc3\x89T\xc3\x89"), "ete");                              // ÉTÉ
  EXPECT_EQ(words("\xd0\x9c\xd0\x98\xd0\xa0"), "\xd0\xbc\xd0\xb8\xd1\x80");  // МИР
  EXPECT_EQ(words("\xe4\xb8\xad\xe6\x96\x87"), "\xe4\xb8\xad \xe6\x96\x87");
  EXPECT_EQ(words("a\xff"
                  "b"),
            "a b");
}

TEST(Words, RemovesEndings) {
  for (const char* word : {"cache", "caches", "cached", "caching"}) EXPECT_EQ(stem(word), "cach");
  EXPECT_EQ(stem("running"), stem("runs"));
  EXPECT_EQ(stem("entries"), stem("entry"));
  EXPECT_EQ(stem("invalidated"), stem("invalidate"));
  EXPECT_EQ(stem("class"), "class");
  EXPECT_EQ(stem("is"), "is");
}

TEST(Words, QuestionsLoseCommonWords) {
  EXPECT_EQ(question_words("Where is the cache of the Cache?"), std::vector<std::string>{"cach"});
  EXPECT_EQ(question_words("what is it"), (std::vector<std::string>{"what", "is", "it"}));
  EXPECT_TRUE(question_words(" ?! ").empty());
}

}  // namespace
}  // namespace prism::search
