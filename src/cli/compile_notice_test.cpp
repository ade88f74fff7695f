// Tests when the notice about long compilations appears.
#include "cli/compile_notice.h"

#include <gtest/gtest.h>

#include <atomic>

namespace prism::cli {
namespace {

using std::chrono::milliseconds;

TEST(CompileNotice, SaysItWhileALongCompilationRuns) {
  std::atomic<int> said = 0;
  CompileNotice notice([&](const std::string& device) { said += device == "fake:0"; },
                       milliseconds(30));
  notice.begin("fake:0");
  for (int i = 0; i < 200 && said == 0; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(said, 1);
  notice.end();
  notice.begin("fake:0");
  std::this_thread::sleep_for(milliseconds(80));
  notice.end();
  EXPECT_EQ(said, 1) << "once for each device";
}

TEST(CompileNotice, AddsUpShortCompilations) {
  std::atomic<int> said = 0;
  CompileNotice notice([&](const std::string&) { ++said; }, milliseconds(60));
  for (int i = 0; i < 20; ++i) {
    notice.begin("fake:0");
    std::this_thread::sleep_for(milliseconds(10));
    notice.end();
  }
  EXPECT_EQ(said, 1);
}

TEST(CompileNotice, IsSilentWhenNothingTakesLong) {
  std::atomic<int> said = 0;
  {
    CompileNotice notice([&](const std::string&) { ++said; }, milliseconds(10000));
    notice.begin("fake:0");
    notice.end();
  }
  EXPECT_EQ(said, 0);
}

}  // namespace
}  // namespace prism::cli
