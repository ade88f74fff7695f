// Tests that the cache folder survives truncated files, foreign files and concurrent writers.
#include "base/cache_folder.h"

#include <atomic>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/warning.h"
#include "support/run_program.h"
#include "support/scoped_variable.h"

#ifndef _WIN32
#include <unistd.h>
#endif

namespace prism {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const std::optional<std::vector<std::byte>>& found) {
  return found ? std::string(reinterpret_cast<const char*>(found->data()), found->size())
               : "nothing";
}

// The only file of a kind; each test writes one.
std::filesystem::path file_of(const std::string& kind) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_folder()))
    if (entry.is_regular_file() && entry.path().string().find(kind) != std::string::npos)
      return entry.path();
  return {};
}

TEST(Cache, GivesBackWhatWasWritten) {
  EXPECT_EQ(text_of(read_cached("test-plain", "absent")), "nothing");
  ASSERT_TRUE(write_cached("test-plain", "key", bytes_of("content")));
  EXPECT_EQ(text_of(read_cached("test-plain", "key")), "content");
  EXPECT_EQ(text_of(read_cached("test-plain", "other key")), "nothing");
  ASSERT_TRUE(write_cached("test-plain", "key", bytes_of("")));
  EXPECT_EQ(text_of(read_cached("test-plain", "key")), "");
}

TEST(Cache, ATornOrForeignFileCountsAsAbsent) {
  const std::string content(1000, 'x');
  ASSERT_TRUE(write_cached("test-torn", "key", bytes_of(content)));
  const std::filesystem::path file = file_of("test-torn");
  ASSERT_FALSE(file.empty()) << "no file of the entry in " << cache_folder();
  const auto size = std::filesystem::file_size(file);
  for (const auto left : {size - 1, size / 2, uintmax_t{3}, uintmax_t{0}}) {
    ASSERT_TRUE(write_cached("test-torn", "key", bytes_of(content)));
    std::filesystem::resize_file(file, left);
    EXPECT_EQ(text_of(read_cached("test-torn", "key")), "nothing") << left << " bytes left";
  }
  ASSERT_TRUE(write_cached("test-torn", "key", bytes_of(content)));
  {
    std::fstream changed(file, std::ios::in | std::ios::out | std::ios::binary);
    changed.seekp(static_cast<std::streamoff>(size - 10));
    changed.put('y');
  }
  EXPECT_EQ(text_of(read_cached("test-torn", "key")), "nothing") << "one byte changed";
  ASSERT_TRUE(write_cached("test-torn", "key", bytes_of(content)));
  EXPECT_EQ(text_of(read_cached("test-torn", "key")), content);
}

#ifndef _WIN32
TEST(Cache, RemovesWhatAKilledProcessLeft) {
  ASSERT_TRUE(write_cached("test-left", "key", bytes_of("content")));
  const std::filesystem::path left = file_of("test-left").string() + ".prism-0123abcd-0.tmp";
  test::write_file(left.string(), "half");
  ASSERT_TRUE(write_cached("test-left", "key", bytes_of("content")));
  EXPECT_FALSE(std::filesystem::exists(left));
}
#endif

TEST(Cache, ThreadsThatWriteOneEntryNeverMixTheirContents) {
  std::atomic<int> mixed = 0, found = 0, written = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string mine(5000, static_cast<char>('a' + t));
      for (int i = 0; i < 50; ++i) {
        written += write_cached("test-threads", "key", bytes_of(mine));
        const auto content = read_cached("test-threads", "key");
        if (!content) continue;
        ++found;
        const std::string text = text_of(content);
        mixed += text.size() != mine.size() || text != std::string(text.size(), text[0]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_EQ(written, 200);
  EXPECT_EQ(found, 200) << "an entry that exists is never absent while it is replaced";
}

#ifndef _WIN32
// Each test sets PRISM_CACHE_DIR to its own folder.
class ForeignCache : public ::testing::Test {
 protected:
  ForeignCache() : before_(set_warning_handler([this](const std::string& text) { said_ = text; })) {
    std::filesystem::create_directory(path_);
  }
  ~ForeignCache() override { set_warning_handler(before_); }
  // Expects that nothing is read from the folder or written to it.
  void expect_refused(const std::string& reason) {
    EXPECT_EQ(cache_folder(), "");
    EXPECT_EQ(cache_subfolder("models"), "");
    EXPECT_NE(said_.find(reason), std::string::npos) << said_;
    EXPECT_FALSE(write_cached("test-foreign", "key", bytes_of("content")));
    EXPECT_EQ(text_of(read_cached("test-foreign", "key")), "nothing");
    EXPECT_THROW(required_cache_folder(), Error);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "cache";
  test::ScopedVariable named_{"PRISM_CACHE_DIR", path_.string()};
  std::string said_;
  WarningHandler before_;
};

TEST_F(ForeignCache, OfThisUserIsUsed) {
  EXPECT_EQ(cache_folder(), path_);
  EXPECT_TRUE(write_cached("test-foreign", "key", bytes_of("content")));
}

TEST_F(ForeignCache, ThatEveryoneMayWriteIsRefused) {
  std::filesystem::permissions(path_, std::filesystem::perms::all);
  expect_refused("can be written by every user");
}

TEST_F(ForeignCache, OfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  expect_refused("belongs to another user");
}

TEST_F(ForeignCache, BehindALinkInTheTemporaryFolderIsRefused) {
  const test::ScopedVariable none("PRISM_CACHE_DIR", ""), no_xdg("XDG_CACHE_HOME", ""),
      no_home("HOME", ""), temporary("TMPDIR", folder_.path().string());
  const auto name = folder_.path() / ("prism-cache-" + std::to_string(geteuid()));
  EXPECT_EQ(cache_folder(), name);
  std::filesystem::create_directory_symlink(path_, name);
  expect_refused("is a symbolic link");
}

TEST_F(ForeignCache, ThatCannotBeThereIsNoExceptionOfTheStandardLibrary) {
  const test::ScopedVariable relative("PRISM_CACHE_DIR", "folder");
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(path_);
  std::filesystem::remove(path_);  // the current folder
  EXPECT_NO_THROW(write_cached("test-foreign", "key", bytes_of("content")));
  EXPECT_EQ(text_of(read_cached("test-foreign", "key")), "nothing");
  std::filesystem::current_path(here);
  const test::ScopedVariable none("PRISM_CACHE_DIR", ""), no_xdg("XDG_CACHE_HOME", ""),
      no_home("HOME", ""), temporary("TMPDIR", folder_ / "absent");
  EXPECT_EQ(cache_folder().parent_path(), "/tmp");
}

TEST_F(ForeignCache, IsMadeForThisUserAlone) {
  std::filesystem::remove(path_);
  ASSERT_TRUE(write_cached("test-foreign", "key", bytes_of("content")));
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms::owner_all);
}
#endif

}  // namespace
}  // namespace prism
