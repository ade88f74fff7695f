// Tests that the current folder does not affect which programs run, and that they end with their
// reader.
#include "base/system/process.h"

#include <gtest/gtest.h>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/run_program.h"
#include "support/scoped_variable.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

// The current folder holds a program `stray`, and PATH names that folder in relative ways.
class StrayProgram : public ::testing::Test {
 protected:
  StrayProgram() : before_(fs::current_path()) {
    std::ofstream(folder_.path() / "stray") << "#!/bin/sh\necho stray ran\n";
    fs::permissions(folder_.path() / "stray", fs::perms::owner_all);
    fs::current_path(folder_.path());
  }
  ~StrayProgram() override { fs::current_path(before_); }

  fs::path before_;
  test::TemporaryFolder folder_;
};

TEST_F(StrayProgram, OfTheCurrentFolderIsNotRun) {
  const std::string path = std::getenv("PATH");
  for (const char* prefix : {".:", ":", "./:", "../" /* a relative name */}) {
    const test::ScopedVariable changed("PATH", prefix + path);
    EXPECT_EQ(find_program("stray"), "") << prefix;
    EXPECT_EQ(find_program("./stray"), "");
    std::string said;
    EXPECT_EQ(run_process({"stray"}, [&](const std::string& line) { said += line; }), 127);
    EXPECT_EQ(said, "");
  }
  const test::ScopedVariable changed("PATH", folder_.path().string() + ":" + path);
  EXPECT_EQ(find_program("stray"), (folder_.path() / "stray").string());
}

TEST_F(StrayProgram, RunsInTheRootFolderWithoutInput) {
  std::vector<std::string> lines;
  const int status = run_process({"sh", "-c", "pwd; cat; echo end >&2; exit 7"},
                                 [&](const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(status, 7);
  EXPECT_EQ(lines, (std::vector<std::string>{"/", "end"}));
}

TEST(Process, ArgumentsAreNotInterpreted) {
  std::string said;
  run_process({"printf", "%s", "$HOME `id` 'a' \"b\" * ; echo"},
              [&](const std::string& line) { said = line; });
  EXPECT_EQ(said, "$HOME `id` 'a' \"b\" * ; echo");
}

TEST(Process, IsEndedWhenItsReaderHasEnough) {
  const auto begun = std::chrono::steady_clock::now();
  const int status = read_process({"sh", "-c", "echo one; exec sleep 60"},
                                  [](std::span<const std::byte>) { return false; });
  EXPECT_EQ(status, 128 + 15);
  EXPECT_THROW(read_process({"sh", "-c", "echo one; exec sleep 60"},
                            [](std::span<const std::byte>) -> bool { throw 1; }),
               int);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

TEST(Process, IsKilledIfItDoesNotEnd) {
  const int status = read_process({"sh", "-c", "trap '' TERM; echo one; exec sleep 60"},
                                  [](std::span<const std::byte>) { return false; });
  EXPECT_EQ(status, 128 + 9);
}

#ifdef __linux__
bool is_running(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  return (in >> number >> name >> state) && state != "Z";
}

TEST(Process, EndsWithTheProcessThatStartedIt) {
  const test::TemporaryFolder folder;
  const std::string note = (folder.path() / "pid").string();
  const pid_t parent = fork();
  if (parent == 0) {
    run_process({"sh", "-c", "echo $$ >" + note + "; exec sleep 60"}, nullptr);
    _exit(0);
  }
  pid_t child = 0;
  for (int look = 0; look < 500 && child == 0; ++look, usleep(10000)) std::ifstream(note) >> child;
  ASSERT_GT(child, 0);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  bool runs = true;
  for (int look = 0; look < 500 && runs; ++look, usleep(10000)) runs = is_running(child);
  EXPECT_FALSE(runs);
}
#endif

TEST(Process, ReportsTheSignalThatEndedIt) {
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}, nullptr), 128 + 9);
}

}  // namespace
}  // namespace prism
#endif
