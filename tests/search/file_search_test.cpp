// Tests `prism index` and `prism search` from outside, by words: without pip no model is fetched.
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/faults/faults.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/terminal_program.h"

namespace prism::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class FileSearchCommand : public testing::Test {
 protected:
  FileSearchCommand() {
    write("notes/cake.md", "# Cakes\n\nA cake without eggs needs apple sauce.\n");
    write("notes/deep/cache.cpp", "// Drops entries.\nvoid invalidateCache(int key) {\n}\n");
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_.path() / name).parent_path());
    write_file(folder_.path() / name, text);
  }
  std::vector<std::string> variables() const {
    return {"PATH=/var/empty", "PRISM_CACHE_DIR=" + folder_ / "cache", "PRISM_BACKENDS=cpu"};
  }
  ProcessResult run(const std::vector<std::string>& words) const {
    std::string command = "cd '" + folder_ / "notes" + "' && exec env";
    for (const std::string& each : variables()) command += " '" + each + "'";
    command += " '" + program().string() + "'";
    for (const std::string& word : words) command += " '" + word + "'";
    return run_process({"sh", "-c", command + " 2>&1"});
  }
  static bool has(const ProcessResult& result, const std::string& part) {
    return result.output.find(part) != std::string::npos;
  }
  test::TemporaryFolder folder_;
};

TEST_F(FileSearchCommand, IndexesAndFinds) {
  const ProcessResult none = run({"search", "eggs"});
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(has(none, "run this once: prism index")) << none.output;
  const ProcessResult made = run({"index"});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_TRUE(has(made, "2 files, 2 passages: 2 files changed, 0 removed")) << made.output;
  EXPECT_TRUE(has(made, "only words are compared")) << made.output;
  EXPECT_TRUE(has(made, "index: " + folder_ / "cache/files/")) << made.output;
  const ProcessResult found = run({"search", "where is the cache invalidated?"});
  EXPECT_EQ(found.status, 0);
  EXPECT_TRUE(has(found, "deep/cache.cpp:2\n      1 // Drops entries.\n>     2 void "))
      << found.output;
  EXPECT_FALSE(has(found, "\033")) << found.output;
  EXPECT_EQ(run({"search", "eggs", "deep"}).status, 1);  // found by the index of the folder above
  EXPECT_TRUE(has(run({"search", "eggs", "..", "--rank", "words"}), "is not indexed yet"));
  EXPECT_TRUE(has(run({"search", "cake", "--lines", "0"}), "cake.md:1\n"));
  EXPECT_TRUE(has(run({"index", "deep"}), "1 file, 2 passages"));  // the same index
}

TEST_F(FileSearchCommand, PrintsJson) {
  run({"index", "--index", folder_ / "an.index", ".", folder_ / "notes/deep"});
  const ProcessResult found = run({"search", "cake cache", "--index", folder_ / "an.index",
                                   "--json", "-n", "1", "--only", "text"});
  const Json json = Json::parse(found.output.substr(found.output.find('{')));
  ASSERT_EQ(json["results"].size(), 1u) << found.output;
  EXPECT_EQ(json["results"][0]["path"], fs::canonical(folder_.path() / "notes/cake.md").string());
  EXPECT_EQ(json["results"][0]["line"], 1);
  EXPECT_EQ(json["ranking"], "words");
}

TEST_F(FileSearchCommand, WrongCalls) {
  run({"index"});
  EXPECT_EQ(run({"search"}).status, 2);
  EXPECT_TRUE(has(run({"search", "x", "--rank", "best"}), "hybrid, vectors or words"));
  EXPECT_TRUE(has(run({"search", "x", "--only", "images"}), "code or text"));
  EXPECT_EQ(run({"search", "x", "-n", "0"}).status, 2);
  EXPECT_TRUE(has(run({"search", "x", "--index", "none"}), "none"));
  EXPECT_EQ(run({"index", "none"}).status, 2);
  EXPECT_TRUE(has(run({"search", "x", "--index", "cake.md"}), "is not an index"));
}

TEST_F(FileSearchCommand, TextOfFilesDoesNotControlTheTerminal) {
  write("notes/evil \033[2J.txt", "owl \033]0;title\007\xe2\x80\xae reversed\n");
  run({"index"});
  TerminalProgram shown({"env", "PATH=/var/empty", "PRISM_CACHE_DIR=" + folder_ / "cache",
                         program().string(), "search", "owl", folder_ / "notes", "--rank",
                         "words"});
  EXPECT_EQ(shown.wait(), 0);
  EXPECT_NE(shown.screen().find("\033[33mowl"), std::string::npos) << shown.screen();
  EXPECT_EQ(shown.screen().find("\033]0"), std::string::npos);
  EXPECT_EQ(shown.screen().find("\033[2J"), std::string::npos);
  EXPECT_NE(shown.screen().find("\\u001b]0;title"), std::string::npos) << shown.screen();
}

TEST_F(FileSearchCommand, FollowsChanges) {
  TerminalProgram watching({"env", "PATH=/var/empty", "PRISM_CACHE_DIR=" + folder_ / "cache",
                            program().string(), "index", "--watch", folder_ / "notes"});
  ASSERT_TRUE(watching.sees("watching for changes")) << watching.screen();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  write("notes/new/owl.txt", "An owl in a new folder.\n");
  ASSERT_TRUE(watching.sees("1 file changed")) << watching.screen();
  EXPECT_TRUE(has(run({"search", "owl", "--rank", "words"}), "new/owl.txt:1"));
  fs::remove(folder_.path() / "notes/new/owl.txt");
  ASSERT_TRUE(watching.sees("1 removed")) << watching.screen();
  watching.type("\x03");
  EXPECT_EQ(watching.wait(), 0) << watching.screen();
}

TEST_F(FileSearchCommand, SurvivesFaultsAtEachWrite) {
  if (!can_inject_faults()) GTEST_SKIP() << "a sanitizer replaces the allocator";
  const std::string index = folder_ / "an.index";
  const ProgramRun program_run{{"index", folder_ / "notes", "--index", index}, variables()};
  run({"index", "--index", index});
  write("notes/more.txt", "A walrus on the beach.\n");
  const std::string before = read_file(index);
  const std::map<std::string, std::vector<int64_t>> calls = count_calls(program_run);
  int runs = 0;
  for (const char* call : {"write", "flush"})
    for (const char* action : {"kill", "ENOSPC"})
      for (const int64_t number : calls.at(call)) {
        const Fault fault{call, number, action};
        SCOPED_TRACE(fault.text());
        write_file(index, before);
        const ProcessResult result = run_with_fault(program_run, fault);
        ++runs;
        // The words of before can be found, and the next run brings the rest.
        EXPECT_TRUE(has(run({"search", "eggs", "--index", index, "--rank", "words"}), "cake.md:3"))
            << result.output;
        EXPECT_EQ(run({"index", "--index", index}).status, 0);
        EXPECT_TRUE(
            has(run({"search", "walrus", "--index", index, "--rank", "words"}), "more.txt:1"));
      }
  EXPECT_GT(runs, 4);
}

}  // namespace
}  // namespace prism::test
