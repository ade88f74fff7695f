#include "search/files/ignore_rules.h"

#include <chrono>
#include <random>

#include <gtest/gtest.h>

#include "support/run_program.h"
#include "support/seed.h"

namespace prism::search {
namespace {

using Verdict = IgnoreRules::Verdict;

bool ignored(const std::string& rules, const std::string& path, bool is_folder = false) {
  return IgnoreRules(rules).verdict(path, is_folder) == Verdict::ignored;
}

TEST(IgnoreRules, NamesMatchAtAnyDepthAndPathsWhereTheyAre) {
  EXPECT_TRUE(ignored("*.o", "a.o"));
  EXPECT_TRUE(ignored("*.o", "deep/in/a.o"));
  EXPECT_FALSE(ignored("*.o", "a.obj"));
  EXPECT_TRUE(ignored("/build", "build"));
  EXPECT_FALSE(ignored("/build", "src/build"));
  EXPECT_TRUE(ignored("src/*.c", "src/a.c"));
  EXPECT_FALSE(ignored("src/*.c", "src/deep/a.c"));
  EXPECT_FALSE(ignored("src/*.c", "other/src/a.c"));
  EXPECT_TRUE(ignored("build/", "x/build", true));
  EXPECT_FALSE(ignored("build/", "x/build", false));
}

TEST(IgnoreRules, DoubleStars) {
  EXPECT_TRUE(ignored("**/foo", "foo"));
  EXPECT_TRUE(ignored("**/foo", "a/b/foo"));
  EXPECT_FALSE(ignored("**/foo", "a/bfoo"));
  EXPECT_TRUE(ignored("a/**", "a/b/c"));
  EXPECT_FALSE(ignored("a/**", "a", true));
  EXPECT_TRUE(ignored("a/**/z", "a/z"));
  EXPECT_TRUE(ignored("a/**/z", "a/b/c/z"));
  EXPECT_FALSE(ignored("a/**/z", "a/bz"));
  EXPECT_TRUE(ignored("/**", "a/b"));
  EXPECT_FALSE(ignored("a**/z", "a/b/z"));  // other double stars stay in a name
}

TEST(IgnoreRules, TheLastPatternDecides) {
  EXPECT_FALSE(ignored("*.log\n!keep.log\n", "keep.log"));
  EXPECT_TRUE(ignored("!keep.log\n*.log\n", "keep.log"));
  EXPECT_EQ(IgnoreRules("*.log").verdict("a.txt", false), Verdict::none);
}

TEST(IgnoreRules, CommentsEscapesSetsAndSpaces) {
  EXPECT_FALSE(ignored("# a\n", "# a"));
  EXPECT_TRUE(ignored("\\#a\n", "#a"));
  EXPECT_TRUE(ignored("\\!a", "!a"));
  EXPECT_TRUE(ignored("a  \r\n", "a"));
  EXPECT_TRUE(ignored("a\\ ", "a "));
  EXPECT_TRUE(ignored("[a-c]x", "bx"));
  EXPECT_FALSE(ignored("[!a-c]x", "bx"));
  EXPECT_TRUE(ignored("[]]", "]"));
  EXPECT_TRUE(ignored("[[:digit:]]?", "7z"));
  EXPECT_FALSE(ignored("[ab", "[ab"));
  EXPECT_FALSE(ignored("a?b", "a/b"));
  EXPECT_TRUE(ignored("\xef\xbb\xbf*.o", "a.o"));
}

TEST(IgnoreRules, ManyStarsTakeNoTime) {
  std::string pattern, path(2000, 'a');
  for (int i = 0; i < 200; ++i) pattern += "*a";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(ignored(pattern + "b", path));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

// git is the reference: random patterns over random paths.
TEST(IgnoreRules, AgreesWithGit) {
  if (test::run_process({"sh", "-c", "git --version"}).status != 0) GTEST_SKIP() << "no git";
  const test::TemporaryFolder folder;
  ASSERT_EQ(test::run_process({"git", "init", "-q", folder.path().string()}).status, 0);
  const auto seed = test_seed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto pick = [&](const std::vector<std::string>& all) { return all[random() % all.size()]; };
  for (int round = 0; round < 40; ++round) {
    std::string rules;
    for (int i = 0; i < 6; ++i) {
      std::string rule;
      for (size_t parts = 1 + random() % 5; parts > 0; --parts)
        rule += pick({"a",    "b",    "ab",   "*",    "?",           "/",   "/",
                      "/**/", "/**/", "[ab]", "[!a]", "[a-b]",       "\\a", "!",
                      "#",    " ",    "x.c",  "*.c",  "[[:alpha:]]", "[",   "]"});
      if (random() % 4 == 0) rule += "/**";
      // "//" is in no path, and git compares two pointers by mistake for other double stars.
      for (size_t at = 0; (at = rule.find("//")) != rule.npos;) rule.erase(at, 1);
      for (size_t at = 1; (at = rule.find("**", at)) != rule.npos;)
        rule[at - 1] == '/' && rule[at + 2] != '*' ? at += 2 : (rule.erase(at, 1), at);
      rules += rule + "\n";
    }
    test::write_file(folder / ".gitignore", rules);
    std::string paths;
    std::vector<std::string> all;
    for (int i = 0; i < 60; ++i) {
      std::string path = pick({"a", "b", "ab", "x.c", "#", "aa b"});
      // Only files at the top: git also ignores what is in an ignored folder.
      all.push_back(path);
      for (size_t depth = random() % 4; depth > 0; --depth)
        all.back() += "/" + pick({"a", "b", "ab", "ba", "x.c", "y.c"});
      paths += all.back() + "\n";
    }
    test::write_file(folder / "paths", paths);
    const std::string command = "cd '" + folder.path().string() +
                                "' && git -c core.quotepath=off check-ignore --no-index --stdin < "
                                "paths";
    const std::string output = "\n" + test::run_process({"sh", "-c", command}).output;
    const IgnoreRules parsed(rules);
    for (const std::string& path : all) {
      bool is_ignored = false;  // as the walk does it, folder by folder
      for (size_t at = path.find('/'); at != path.npos && !is_ignored; at = path.find('/', at + 1))
        is_ignored = parsed.verdict(path.substr(0, at), true) == Verdict::ignored;
      if (!is_ignored) is_ignored = parsed.verdict(path, false) == Verdict::ignored;
      const bool by_git = output.find("\n" + path + "\n") != output.npos;
      EXPECT_EQ(is_ignored, by_git) << path << "\nby\n" << rules;
    }
  }
}

}  // namespace
}  // namespace prism::search
