#include "search/files/file_walk.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "support/run_program.h"

namespace prism::search {
namespace {

namespace fs = std::filesystem;

class FileWalk : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text = "text\n") const {
    fs::create_directories((folder_.path() / name).parent_path());
    test::write_file(folder_.path() / name, text);
  }
  std::vector<std::string> names(const std::string& root = ".") const {
    std::vector<std::string> all;
    for (const WalkedFile& file : walk_files(folder_ / root).files)
      all.push_back(fs::path(file.path).lexically_relative(whole_path(folder_.path())).string());
    return all;
  }
  test::TemporaryFolder folder_;
};

TEST_F(FileWalk, HonoursNestedIgnoreFiles) {
  write(".gitignore", "*.o\n/out/\n!keep.o\n");
  write("a.c");
  write("a.o");
  write("keep.o");
  write("out/a.c");
  write("sub/out/a.c");
  write("sub/.gitignore", "*.c\n!b.c\n");
  write("sub/b.c");
  write("sub/deep/c.c");
  write("sub/.ignore", "!deep/c.c\n");
  write(".hidden/a.c");
  write(".git/a.c");
  write(".git/info/exclude", "secret\n");
  write("secret");
  EXPECT_EQ(names(), (std::vector<std::string>{"a.c", "keep.o", "sub/b.c", "sub/deep/c.c"}));
  // Inside of the repository its rules hold for a subfolder, too.
  EXPECT_EQ(names("sub"), (std::vector<std::string>{"sub/b.c", "sub/deep/c.c"}));
  EXPECT_EQ(names("out/a.c"), std::vector<std::string>{"out/a.c"});  // named by the user
}

TEST_F(FileWalk, DoesNotFollowLinks) {
  const test::TemporaryFolder elsewhere;
  test::write_file(elsewhere.path() / "other.c", "x");
  write("a.c");
  fs::create_directory_symlink(elsewhere.path(), folder_.path() / "away");
  fs::create_directory_symlink(folder_.path(), folder_.path() / "round");
  fs::create_symlink(elsewhere.path() / "other.c", folder_.path() / "file.c");
  EXPECT_EQ(names(), std::vector<std::string>{"a.c"});
}

TEST_F(FileWalk, ReportsWhatCannotBeRead) {
  EXPECT_THROW(walk_files(folder_ / "none"), Error);
  write("a.c");
  write("closed/b.c");
  fs::permissions(folder_.path() / "closed", fs::perms::none);
  const Walk walk = walk_files(folder_.path().string());
  fs::permissions(folder_.path() / "closed", fs::perms::owner_all);
  EXPECT_EQ(walk.files.size() + walk.unreadable.size(), 2u);  // root may read it
}

TEST_F(FileWalk, IsUnder) {
  EXPECT_TRUE(is_under("/a/b", "/a"));
  EXPECT_TRUE(is_under("/a", "/a"));
  EXPECT_TRUE(is_under("/a", "/"));
  EXPECT_FALSE(is_under("/ab", "/a"));
}

}  // namespace
}  // namespace prism::search
