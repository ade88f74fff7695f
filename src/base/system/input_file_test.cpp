// Tests that every kind of file is read or reported, and that nothing blocks or grows for ever.
#include "base/system/input_file.h"

#include <gtest/gtest.h>

#ifndef _WIN32
#include <sys/stat.h>
#endif

#include <fstream>
#include <thread>

#include "prism/error.h"
#include "support/run_program.h"

namespace prism {
namespace {

ErrorCode code_of(const std::string& path, uint64_t limit = kMaximumInputBytes) {
  try {
    read_input_file(path, limit);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << path << " was read";
  return ErrorCode::kDriver;
}

TEST(InputFile, ReadsPlainFiles) {
  const test::TemporaryFolder folder;
  const std::string content = std::string(100000, 'x') + std::string("\0\xff\r\n", 4);
  test::write_file(folder / "file", content);
  test::write_file(folder / "empty", "");
  EXPECT_EQ(read_input_file(folder / "file"), content);
  EXPECT_EQ(read_input_file(folder / "empty"), "");
  EXPECT_EQ(code_of(folder / "file", 1000), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(folder / "absent"), ErrorCode::kNotFound);
}

#ifndef _WIN32
TEST(InputFile, FoldersAndEndlessDevicesAreErrors) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(code_of(folder.path().string()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of("/dev/zero", 1 << 20), ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_input_file("/dev/null"), "");
}

TEST(InputFile, PipesNeedAWriter) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(code_of(pipe), ErrorCode::kIo);
  std::thread writer([&] { std::ofstream(pipe) << "from a pipe"; });
  EXPECT_EQ(read_input_file(pipe), "from a pipe");
  writer.join();
}
#endif

}  // namespace
}  // namespace prism
