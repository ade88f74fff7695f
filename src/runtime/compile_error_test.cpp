// A compile error must contain log, lines and file path; dump names must be stable.
#include "runtime/compile_error.h"
#include "support/scoped_variable.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace prism {
namespace {

namespace fs = std::filesystem;

using test::ScopedVariable;

std::string content(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

DeviceInfo some_device() {
  DeviceInfo device;
  device.id = "vulkan:3";
  device.name = "Some Device";
  device.driver = "some 1.2";
  return device;
}

ir::Kernel some_kernel() {
  ir::Kernel kernel;
  kernel.name = "row_sum";
  return kernel;
}

std::string text_of_lines(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

TEST(CompileError, ShowsAShortTextWholeAndMarksTheLineNamed) {
  const std::string numbered = numbered_source("a\nb\nc\n", "x.cl:2:1: error: what");
  EXPECT_EQ(numbered, "     1 | a\n>    2 | b\n     3 | c\n");
}

TEST(CompileError, ShowsOfALongTextTheLinesNearThoseNamed) {
  const std::string numbered =
      numbered_source(text_of_lines(500), "k.cu(100): error\n<source>:400:77: error");
  EXPECT_NE(numbered.find(">  100 | line 100\n"), std::string::npos);
  EXPECT_NE(numbered.find(">  400 | line 400\n"), std::string::npos);
  EXPECT_NE(numbered.find("   397 | line 397\n"), std::string::npos);
  EXPECT_EQ(numbered.find("line 396\n"), std::string::npos);
  EXPECT_EQ(numbered.find("line 77\n"), std::string::npos) << "a column is not a line";
}

TEST(CompileError, KeepsTheTextAndNamesItsFile) {
  const fs::path folder =
      fs::temp_directory_path() / ("prism-compile-error-test-" + std::to_string(getpid()));
  fs::remove_all(folder);
  ScopedVariable cache("PRISM_CACHE_DIR", folder.string());
  const KernelText text = kernel_text(some_device(), some_kernel(), "broken text\n", "cl");
  const Error error = compile_error(some_device(), some_kernel(), text, ":1:1: error: broken");
  EXPECT_EQ(error.code(), ErrorCode::kCompile);
  const std::string message = error.what();
  for (const char* part : {"row_sum", "vulkan:3", "Some Device", ":1:1: error: broken",
                           ">    1 | broken text", "some 1.2"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " is missing in\n" << message;
  const fs::path kept = folder / "failed" / text.file;
  EXPECT_NE(message.find(kept.string()), std::string::npos) << message;
  EXPECT_EQ(content(kept), "broken text\n");
  fs::remove_all(folder);
}

TEST(CompileError, DumpsUnderOneNameAndTakesAReplacement) {
  const fs::path folder =
      fs::temp_directory_path() / ("prism-kernel-dump-test-" + std::to_string(getpid()));
  fs::remove_all(folder);
  ScopedVariable dump("PRISM_DUMP", folder.string());
  const KernelText first = kernel_text(some_device(), some_kernel(), "printed\n", "cl");
  EXPECT_EQ(first.text, "printed\n");
  EXPECT_EQ(first.file.rfind("vulkan-3.row_sum.", 0), 0u) << first.file;
  EXPECT_EQ(content(folder / first.file), "printed\n");
  EXPECT_FALSE(content(folder / (first.name + ".ir")).empty());
  dump_log(first, "a warning");
  EXPECT_EQ(content(folder / (first.name + ".log")), "a warning");

  fs::create_directories(folder / "replace");
  std::ofstream(folder / "replace" / first.file) << "by hand\n";
  EXPECT_EQ(kernel_text(some_device(), some_kernel(), "printed\n", "cl").text, "by hand\n");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace prism
