// Tests probing of libraries that crash, hang, exit or refuse.
#include "base/system/probe_library.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/system/child_run.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

class ProbeLibrary : public testing::Test {
 protected:
  ProbeLibrary()
      : folder_(fs::temp_directory_path() / ("prism-probe-" + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "cache");
    if (const char* old = std::getenv("PRISM_CACHE_DIR")) old_ = old;
    setenv("PRISM_CACHE_DIR", (folder_ / "cache").c_str(), 1);
    std::ofstream(file()) << "a library";
  }
  ~ProbeLibrary() override {
    old_.empty() ? unsetenv("PRISM_CACHE_DIR") : setenv("PRISM_CACHE_DIR", old_.c_str(), 1);
    fs::remove_all(folder_);
  }
  std::string file() const { return (folder_ / "libsome.so").string(); }
  fs::path folder_;
  std::string old_;
};

int calls = 0;  // counts calls in this process; the child increments its own copy

std::string fine(const std::string&) {
  ++calls;
  return "";
}
std::string refuses(const std::string& file) { return file + " is too old"; }
std::string crashes(const std::string&) {
  std::raise(SIGSEGV);
  return "";
}
std::string leaves(const std::string&) { _exit(0); }
std::string throws(const std::string&) { throw std::runtime_error("threw"); }
std::string hangs(const std::string&) {
  std::this_thread::sleep_for(std::chrono::hours(1));
  return "";
}

TEST_F(ProbeLibrary, TellsWhatALibraryDid) {
  EXPECT_TRUE(probe_library(file(), "fine", fine).usable());
  EXPECT_EQ(calls, 0) << "tried in this process";
  EXPECT_EQ(probe_library(file(), "refuses", refuses).reason, file() + " is too old");
  EXPECT_EQ(probe_library(file(), "throws", throws).reason, "threw");
  EXPECT_NE(probe_library(file(), "crashes", crashes).reason.find("crashed"), std::string::npos);
  EXPECT_NE(probe_library(file(), "leaves", leaves).reason.find("ended the process"),
            std::string::npos);
  const auto start = std::chrono::steady_clock::now();
  const auto late = probe_library(file(), "hangs", hangs, std::chrono::milliseconds(100));
  EXPECT_NE(late.reason.find("within 100 ms"), std::string::npos) << late.reason;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_FALSE(probe_library((folder_ / "absent.so").string(), "fine", fine).usable());
}

TEST_F(ProbeLibrary, NoChildIsMadeWhileAnotherThreadLoads) {
  std::atomic<bool> begun = false, loaded = false;
  std::thread other([&] {
    const LoadingLibraries loads, inside;
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    loaded = true;
  });
  while (!begun) std::this_thread::yield();
  const LoadingLibraries own;  // released while the probe waits
  const auto sees = [&](const std::string&) { return loaded ? "" : "made too early"; };
  EXPECT_EQ(probe_library(file(), "between", sees).reason, "");
  other.join();
}

// Tests that no thread waits forever.
TEST_F(ProbeLibrary, ThreadsThatLoadAndTryTakeTurns) {
  std::vector<std::thread> threads;
  std::atomic<int> usable = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const LoadingLibraries loads;
        usable += probe_library(file(), std::to_string(t * 5 + i), fine).usable();
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(usable, 20);
}

TEST_F(ProbeLibrary, RemembersUntilTheFileChanges) {
  EXPECT_FALSE(probe_library(file(), "some", refuses).remembered);
  const auto again = probe_library(file(), "some", fine);
  EXPECT_TRUE(again.remembered);
  EXPECT_NE(again.reason.find("too old by an earlier run"), std::string::npos) << again.reason;
  std::ofstream(file()) << "a newer library";
  const auto newer = probe_library(file(), "some", fine);
  EXPECT_FALSE(newer.remembered);
  EXPECT_TRUE(newer.usable());
  EXPECT_TRUE(probe_library(file(), "some", refuses).remembered);
}

TEST_F(ProbeLibrary, FindsAFileByNameOrPath) {
  const char* old = std::getenv("LD_LIBRARY_PATH");
  const std::string kept = old ? old : "";
  setenv("LD_LIBRARY_PATH", folder_.c_str(), 1);
  EXPECT_EQ(find_library({"libnone_such.so", "libsome.so"}), file());
  EXPECT_EQ(find_library({file()}), file());
  EXPECT_EQ(find_library({(folder_ / "libnone_such.so").string()}), "");
  old ? setenv("LD_LIBRARY_PATH", kept.c_str(), 1) : unsetenv("LD_LIBRARY_PATH");
}

}  // namespace
}  // namespace prism
