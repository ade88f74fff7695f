// Tests part files that several users open at the same time.
#include "llm/store/part_file.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#endif

#include <filesystem>
#include <string>
#include <thread>

#include "prism/error.h"
#include "support/run_program.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(PartFile, GrowsOverSeveralObjects) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "f";
  {
    PartFile part(path);
    part.append(bytes_of("one "));
    EXPECT_THROW(PartFile second(path), Error) << "it is locked";
  }
  PartFile part(path);
  EXPECT_EQ(part.bytes(), 4u);
  part.append(bytes_of("two"));
  part.commit();
  EXPECT_EQ(test::read_file(path), "one two");
  EXPECT_FALSE(fs::exists(path + ".part"));
}

TEST(PartFile, RemovesItsNameWhileItIsLocked) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "f";
  PartFile part(path);
  part.remove();
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

#ifndef _WIN32
TEST(PartFile, FollowsNoSymbolicLink) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "other", "precious");
  fs::create_symlink(folder / "other", folder / "f.part");
  EXPECT_THROW(PartFile part(folder / "f"), Error);
  EXPECT_EQ(test::read_file(folder / "other"), "precious");
}

#endif

#ifdef __linux__
// A second user may open the part before the first renames it and lock it afterwards. It then holds
// the finished file and must not change it. A lease keeps the second one inside open().
TEST(PartFile, TheFinishedFileIsNotOpenedAsAPart) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "f", part = path + ".part";
  test::write_file(part, "content");
  signal(SIGIO, SIG_IGN);  // sent when a lease ends
  const int file = open(part.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  if (fcntl(file, F_SETLEASE, F_RDLCK) != 0) {
    close(file);
    GTEST_SKIP() << "the file system of " << folder.path() << " has no leases";
  }
  std::thread second([&] { PartFile(path).clear(); });
  while (fcntl(file, F_GETLEASE) == F_RDLCK) std::this_thread::yield();
  fs::rename(part, path);
  fcntl(file, F_SETLEASE, F_UNLCK);
  second.join();
  close(file);
  EXPECT_EQ(test::read_file(path), "content");
  EXPECT_TRUE(fs::exists(part)) << "the second user began another one";
}
#endif

}  // namespace
}  // namespace prism
