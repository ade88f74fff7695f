// Tests the command line: values of variables, rejected words, which action runs. Of the parser's
// own messages it checks only the parts that all versions share.
#include "cli/command_line.h"

#include <gtest/gtest.h>

#include "prism/error.h"

namespace prism::cli {
namespace {

struct Values {
  std::string text = "start", other, path;
  int32_t small = 1;
  int64_t count = 2;
  uint32_t threads = 3;
  uint64_t seed = 4;
  float share = 0.5f;
  std::optional<uint64_t> cases;
  std::vector<std::string> names;
  std::vector<int64_t> sizes = {512};
  bool is_loud = false, has_seed = false;
};

struct Outcome {
  int status;
  std::string output, errors;
};

// A program with two commands and a subcommand; the first command returns status 7.
class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() : line_("made", "A made program.", "1.2") {
    const Command program = line_.program();
    program.needs_subcommand();
    const Command first = program.subcommand("first", "takes everything");
    first.option("text", v_.text, "a word").shows_default();
    first.option("-s,--small", v_.small, "a small one").positive();
    first.option("--count", v_.count, "a count").not_negative().shows_default();
    first.option("--threads", v_.threads, "threads").between(1, 8);
    Option seed = first.option("--seed", v_.seed, "a seed").sets(v_.has_seed);
    first.option("--share", v_.share, "a share").shows_default();
    const Command rare = first.group("Rare");
    seed.excludes(rare.option("--cases", v_.cases, "cases"));
    rare.option("--name", v_.names, "a name").separated_by(',');
    rare.option("--size", v_.sizes, "a size").separated_by(',').positive().shows_default();
    rare.option("--path", v_.path, "a path").not_empty();
    rare.flag("--loud,-l,!--soft", v_.is_loud, "loudly");
    first.footer("That was all.");
    first.run([this] { return ++runs_, 7; });
    const Command below = first.subcommand("below", "needs a word");
    below.option("word", v_.other, "the word").required();
    below.run([this] { return ++runs_below_, kRight; });
    program.subcommand("second", "does nothing");
  }

  Outcome call(std::vector<const char*> words) {
    words.insert(words.begin(), "made");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int status = -1;
    std::string thrown;
    try {
      status = line_.run(words);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      thrown = error.what();
    }
    const std::string output = testing::internal::GetCapturedStdout();
    return {status, output, testing::internal::GetCapturedStderr() + thrown};
  }

  Values v_;
  CommandLine line_;
  int runs_ = 0, runs_below_ = 0;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(CommandLineTest, PutsWordsIntoVariablesAndGivesTheActionsStatus) {
  const Outcome outcome =
      call({"first", "word", "-s", "9", "--count=0", "--threads", "8", "--seed", "11", "--share",
            "0.25", "--name", "a,b", "--name", "c", "--size", "1,2", "--loud"});
  EXPECT_EQ(outcome.status, 7) << outcome.errors;
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(v_.text, "word");
  EXPECT_EQ(v_.small, 9);
  EXPECT_EQ(v_.count, 0);
  EXPECT_EQ(v_.threads, 8u);
  EXPECT_EQ(v_.seed, 11u);
  EXPECT_EQ(v_.share, 0.25f);
  EXPECT_EQ(v_.names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(v_.sizes, (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(v_.is_loud && v_.has_seed);
  EXPECT_FALSE(v_.cases.has_value());
}

TEST_F(CommandLineTest, LeavesWhatIsNotGiven) {
  EXPECT_EQ(call({"first", "--cases", "0"}).status, 7);
  EXPECT_EQ(v_.text, "start");
  EXPECT_EQ(v_.sizes, (std::vector<int64_t>{512}));
  EXPECT_EQ(v_.cases, 0u);
  EXPECT_FALSE(v_.is_loud || v_.has_seed);
}

TEST_F(CommandLineTest, AnEmptyValueIsNotTheNextWord) {
  EXPECT_EQ(call({"first", "--name=", "--loud", "--name=x"}).status, 7);
  EXPECT_EQ(v_.names, (std::vector<std::string>{"", "x"}));
  EXPECT_TRUE(v_.is_loud);
  EXPECT_EQ(call({"first", "--", "--name="}).status, 7);
  EXPECT_EQ(v_.text, "--name=");
}

TEST_F(CommandLineTest, NumbersAreDecimal) {
  EXPECT_EQ(call({"first", "-s", "010", "--share", "+1e-3"}).status, 7);
  EXPECT_EQ(v_.small, 10);
  EXPECT_EQ(v_.share, 1e-3f);
  EXPECT_EQ(call({"first", "--seed", "18446744073709551615", "--share", "1e-60"}).status, 7);
  EXPECT_EQ(v_.seed, UINT64_MAX);
  EXPECT_EQ(v_.share, 0.0f);
}

TEST_F(CommandLineTest, PreparesBeforeAnActionOnly) {
  int prepared = 0;
  line_.before_actions([&] {
    if (++prepared == 2) throw Error(ErrorCode::kInvalidArgument, "not prepared");
  });
  call({"first", "--help"});
  EXPECT_EQ(prepared, 0);
  EXPECT_EQ(call({"first"}).status, 7);
  EXPECT_EQ(call({"first"}).errors, "not prepared");
  EXPECT_EQ(runs_, 1);
}

TEST_F(CommandLineTest, RunsOneActionAlone) {
  EXPECT_EQ(call({"first", "below", "x"}).status, kRight);
  EXPECT_EQ(runs_below_, 1);
  EXPECT_EQ(runs_, 0) << "of a command above the one that was called";
  EXPECT_EQ(v_.other, "x");
}

TEST_F(CommandLineTest, WrongWordsAreToldAndNothingRuns) {
  struct Case {
    std::vector<const char*> words;
    const char* told;
  };
  for (const Case& each : std::vector<Case>{
           {{"first", "-s", "0"}, "--small: 0 is not a number above 0"},
           {{"first", "-s", "x"}, "--small: \"x\" is not a whole number"},
           {{"first", "-s", "1.5"}, "--small: \"1.5\" is not a whole number"},
           {{"first", "-s", "0x10"}, "--small: \"0x10\" is not a whole number"},
           {{"first", "-s", ""}, "--small: \"\" is not a whole number"},
           {{"first", "-s", "2147483648"}, "--small: 2147483648 is not a number from -2147483648"},
           {{"first", "--seed", "18446744073709551616"},
            "18446744073709551616 is not a number from 0 to 18446744073709551615"},
           {{"first", "--seed", "-1"}, "--seed: -1 is not a number of at least 0"},
           {{"first", "--count=", "3"}, "--count: \"\" is not a whole number"},
           {{"first", "--path="}, "--path: the value is empty; is the variable set"},
           {{"first", "--path", ""}, "--path: the value is empty"},
           {{"first", "--share", "nan"}, "--share: \"nan\" is not a number"},
           {{"first", "--share", "inf"}, "--share: \"inf\" is not a number"},
           {{"first", "--share", "1e39"}, "--share: \"1e39\" is not a number"},
           {{"first", "--share", "0.5x"}, "--share: \"0.5x\" is not a number"},
           {{"first", "--count", "-1"}, "--count: -1 is not a number of at least 0"},
           {{"first", "--threads", "9"}, "--threads: Value 9 not in range"},
           {{"first", "--seed", "1", "--cases", "1"}, "--seed excludes --cases"},
           {{"first", "--size", "1,0"}, "--size"},
           {{"first", "--loud=16x"}, "--loud takes no value"},
           {{"first", "--soft=16222222222222222222"}, "--soft takes no value"},
           {{"first", "--seed", "1", "--seed", "2"}, "--seed is given twice"},
           {{"first", "--seed"}, "--seed needs a value"},
           {{"first", "below"}, "word is required"},
           {{"first", "--quiet"}, "made first has no option --quiet"},
           {{"first", "--cout", "3"}, "has no option --cout; did you mean --count?"},
           {{"first", "a", "b"}, "made first does not take \"b\""},
           {{"first", "--laud"}, "`made first --help` lists what it takes"},
           {{}, "made needs a command: first, second; `made --help` explains them"},
           {{"frist"},
            "\"frist\" is not a command of made; did you mean \"first\"? Valid names: "
            "first, second"}}) {
    const Outcome outcome = call(each.words);
    EXPECT_TRUE(has(outcome.errors, each.told)) << each.told << " is not in " << outcome.errors;
    EXPECT_NE(outcome.status, kRight) << each.told;
    EXPECT_EQ(outcome.output, "");
  }
  EXPECT_EQ(runs_ + runs_below_, 0);
}

TEST_F(CommandLineTest, HelpAndVersionAreResults) {
  const Outcome help = call({"first", "--help"});
  EXPECT_EQ(help.status, kRight);
  EXPECT_EQ(help.errors, "");
  for (const char* part : {"takes everything", "a word (default: start)", "-s, --small N",
                           "--count N", "(default: 0.5)", "--size N", "[512]", "--name TEXT",
                           "\nRare:\n", "--seed N", "not with --cases", "That was all."})
    EXPECT_TRUE(has(help.output, part)) << part << " is not in " << help.output;
  EXPECT_LT(help.output.find("--seed N"), help.output.find("\nRare:\n"));
  EXPECT_GT(help.output.find("--loud"), help.output.find("\nRare:\n"));
  EXPECT_EQ(call({"--version"}).output, "made 1.2\n");
  EXPECT_EQ(runs_, 0);
}

}  // namespace
}  // namespace prism::cli
