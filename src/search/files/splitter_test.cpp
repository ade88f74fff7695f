#include "search/files/splitter.h"

#include <random>

#include <gtest/gtest.h>

#include "search/files/words.h"
#include "support/seed.h"

namespace prism::search {
namespace {

std::vector<Passage> split(const std::string& text, Structure structure, uint64_t tokens = 256) {
  return split_text(text, structure, {.max_tokens = tokens, .count_tokens = estimated_tokens});
}

std::string function(const std::string& name, int lines) {
  std::string text = "// Says what " + name + " does.\nint " + name + "(int x) {\n";
  for (int i = 0; i < lines; ++i)
    text += "  x = " + name + "_step(x + " + std::to_string(i) + ");\n";
  return text + "  return x;\n}\n\n";
}

TEST(Splitter, CutsBetweenFunctions) {
  const std::string text =
      "#include <a>\n#include <b>\n\n" + function("first", 8) + function("second", 9);
  const std::vector<Passage> passages = split(text, Structure::braces);
  ASSERT_EQ(passages.size(), 2u);
  EXPECT_TRUE(passages[1].text.starts_with("// Says what second")) << passages[1].text;
  EXPECT_TRUE(passages[1].text.ends_with("}"));
  EXPECT_EQ(passages[1].first_line, 17u);
  EXPECT_EQ(passages[1].last_line, 29u);
}

TEST(Splitter, JoinsShortFunctionsAndCutsLongOnes) {
  const std::string small = "int one() { return 1; }\n\nint two() { return 2; }\n";
  EXPECT_EQ(split(small, Structure::braces).size(), 1u);
  const std::vector<Passage> passages = split(function("large", 60), Structure::braces);
  ASSERT_GT(passages.size(), 2u);
  EXPECT_EQ(passages[1].context, "int large(int x)");
  EXPECT_LE(passages[1].first_line, passages[0].last_line);  // lines are repeated
  EXPECT_GE(passages[1].first_line + 2, passages[0].last_line);
}

TEST(Splitter, CutsPythonByIndentation) {
  std::string text = "import os\n\nclass Store:\n    kind = 1\n\n";
  for (const char* name : {"read", "write"}) {
    text += "    @cached\n    def " + std::string(name) + "(self, path):\n";
    for (int i = 0; i < 8; ++i)
      text += "        self.step(path, 'a step of it', " + std::to_string(i) + ")\n";
    text += "\n";
  }
  const std::vector<Passage> passages = split(text, Structure::indents);
  ASSERT_EQ(passages.size(), 2u);
  EXPECT_TRUE(passages[1].text.starts_with("    @cached\n    def write")) << passages[1].text;
  EXPECT_EQ(passages[1].context, "class Store");
}

TEST(Splitter, CutsMarkdownAtHeadings) {
  std::string sentence;
  for (int i = 0; i < 12; ++i) sentence += "A sentence about the matter of this section. ";
  const std::string text = "# Book\n\n" + sentence + "\n\n## Bread\n\n" + sentence +
                           "\n\n```\n# no heading\n```\n\n## Cake\n" + sentence + "\n";
  const std::vector<Passage> passages = split(text, Structure::markdown);
  ASSERT_EQ(passages.size(), 3u);
  EXPECT_TRUE(passages[1].text.starts_with("## Bread"));
  EXPECT_EQ(passages[1].context, "# Book");
  EXPECT_TRUE(passages[1].text.ends_with("```"));
  EXPECT_TRUE(passages[2].text.starts_with("## Cake"));
}

TEST(Splitter, CutsLongLinesAtSentences) {
  std::string line;
  for (int i = 0; i < 100; ++i) line += "This is sentence " + std::to_string(i) + " of one line. ";
  const std::vector<Passage> passages = split(line, Structure::prose);
  ASSERT_GT(passages.size(), 2u);
  for (const Passage& each : passages) {
    EXPECT_EQ(each.first_line, 1u);
    EXPECT_LE(estimated_tokens(each.text), 256u);
    EXPECT_TRUE(each.text.starts_with("This is")) << each.text;
  }
}

// Every word is in a passage, passages are in order and within the limit.
TEST(Splitter, KeepsItsPromisesOnRandomTexts) {
  const auto seed = test_seed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> pieces = {"word ",
                                           "longer_identifier ",
                                           "{\n",
                                           "}\n",
                                           "\n\n",
                                           "    ",
                                           "\t",
                                           "# ",
                                           "## heading\n",
                                           "```\n",
                                           "- item\n",
                                           "\xc3\xa9t\xc3\xa9 ",
                                           "\xe4\xb8\xad\xe6\x96\x87",
                                           "a.b; ",
                                           "def f():\n",
                                           "end\n",
                                           ")",
                                           "===\n",
                                           "1. ",
                                           std::string(700, 'x'),
                                           std::string(300, '+')};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t count = random() % 120; count > 0; --count)
      text += pieces[random() % pieces.size()];
    const auto structure = static_cast<Structure>(random() % 4);
    const uint64_t limit = 32 + random() % 300;
    uint64_t line = 1;
    size_t end = 0;
    for (const Passage& each : split(text, structure, limit)) {
      const auto begin = static_cast<size_t>(each.text.data() - text.data());
      const std::string between = begin > end ? text.substr(end, begin - end) : "";
      EXPECT_EQ(between.find_first_not_of(" \t\n"), between.npos) << between;
      EXPECT_EQ(each.first_line,
                1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(begin), '\n'));
      EXPECT_GE(each.first_line + 3, line);
      EXPECT_LE(estimated_tokens(each.text) + estimated_tokens(each.context) + 2, limit);
      line = each.last_line;
      end = begin + each.text.size();
    }
    EXPECT_EQ(text.find_first_not_of(" \t\n", end), text.npos) << text.substr(end);
  }
}

}  // namespace
}  // namespace prism::search
